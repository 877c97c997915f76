// The translators: `import { translateAgentLightning } from 'hessian-pilot/trajectory/translate'`. Apart from the contract,
// which is quick to load without them.
export { translateAgentLightning } from './agent-lightning.ts'
export type { Launcher, LauncherInput } from './launcher.ts'
export { translateNemoGym } from './nemo-gym.ts'
export type { Diagnostic, Translation } from './to-rows.ts'
export {
  formatTranslateFault,
  TranslateError,
  type TranslateFault,
  type TranslateRule,
} from './translate-error.ts'
export { translateTrl } from './trl.ts'
export { translateVerifiers01 } from './verifiers-0-1.ts'
export { translateVerifiers04 } from './verifiers-0-4.ts'
export { translateVerl } from './verl.ts'
