// The contract hessian.trajectory.v1, usable on its own: `import { readTrajectories } from 'hessian-pilot/trajectory'`.
export { type CheckOptions, checkTrajectories } from './check.ts'
export { trajectoryFaults, validateTrajectory } from './check-record.ts'
export { type Fault, formatFault, TrajectoryError } from './fault.ts'
export { readTrajectories } from './read.ts'
export { isMutableRevision } from './revision.ts'
export { RULES, type Rule } from './rule.ts'
export { type Call, type Trajectory, trajectorySchema } from './schema.ts'
export { type TrajectoryStats, trajectoryStats } from './stats.ts'
