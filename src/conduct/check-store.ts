// What `pilot doctor` says of the shared store: for now what is configured.

import type { Finding } from '../report/doctor.ts'

/** Says which store is configured. Whoever adds a backend has it reached here, and its answer told. */
export async function checkStore(
  environment: Readonly<Record<string, string | undefined>>,
): Promise<Finding> {
  const configured = environment['PILOT_STORE']
  if (!configured) return { state: 'ok', what: 'store', found: 'the local one only: PILOT_STORE is not set' }
  return { state: 'ok', what: 'store', found: `PILOT_STORE is ${withoutSecrets(configured)}, not asked` }
}

/** A URL may carry a password, and signed ones a signature. */
function withoutSecrets(url: string): string {
  return url.replace(/\/\/[^/@]*@/, '//***@').replace(/\?.*$/s, '?***')
}
