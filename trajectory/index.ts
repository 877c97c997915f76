// The contract hessian.trajectory.v1, usable on its own: `import { readTrajectories } from 'hessian-pilot/trajectory'`.
export { type CheckOptions, checkTrajectories } from './check.ts'
export { trajectoryFaults, validateTrajectory } from './check-record.ts'
export { type Fault, formatFault, TrajectoryError } from './fault.ts'
export { readTrajectories } from './read.ts'
export { isMutableRevision } from './revision.ts'
export { RULES, type Rule } from './rule.ts'
export { type Call, type Trajectory, trajectorySchema } from './schema.ts'
export { type TrajectoryStats, trajectoryStats } from './stats.ts'
export { translateAgentLightning } from './translate/agent-lightning.ts'
export type { Launcher, LauncherInput } from './translate/launcher.ts'
export { translateNemoGym } from './translate/nemo-gym.ts'
export type { Diagnostic, Translation } from './translate/to-rows.ts'
export {
  formatTranslateFault,
  TranslateError,
  type TranslateFault,
  type TranslateRule,
} from './translate/translate-error.ts'
export { translateTrl } from './translate/trl.ts'
export { translateVerifiers01 } from './translate/verifiers-0-1.ts'
export { translateVerifiers04 } from './translate/verifiers-0-4.ts'
export { translateVerl } from './translate/verl.ts'
export { writeTrajectories } from './write.ts'
