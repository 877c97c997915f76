// pilot why STAGE: the exact fields in which the action now differs from the one last brought about here.

import { explain } from '../conduct/explain.ts'
import type { Flags } from '../config.ts'
import { formatWhy } from '../report/explain.ts'
import { openSession, print } from './session.ts'

export async function whyCommand(
  name: string,
  flags: Flags & { readonly json?: boolean | undefined },
): Promise<number> {
  using session = await openSession(flags)
  const explained = await explain(session.project, name)
  if (flags.json) print(JSON.stringify(explained))
  else print(formatWhy(explained))
  return 0
}
