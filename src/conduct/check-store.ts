// What `pilot doctor` says of the store beyond this machine: for now what is configured.

import type { RemoteConfig } from '../config.ts'
import type { Finding } from '../report/doctor.ts'

/** Says which store is configured and how it would be used. To ask it whether it answers belongs here.
 *  @param declared address of the pipeline's own store */
export async function checkStore(
  { address, mode }: Pick<RemoteConfig, 'address' | 'mode'>,
  declared: string | undefined,
): Promise<Finding> {
  const configured = address ?? declared
  if (configured === undefined) return { state: 'ok', what: 'store', found: 'the local one only' }
  const use = mode === 'off' ? 'turned off' : `${mode}, not asked whether it answers`
  return { state: 'ok', what: 'store', found: `${withoutSecrets(configured)}: ${use}` }
}

/** A URL may carry a password, and signed ones a signature. */
function withoutSecrets(url: string): string {
  return url.replace(/\/\/[^/@]*@/, '//***@').replace(/\?.*$/s, '?***')
}
