// pilot events: the JSON Schema of what --json prints.

import { eventJsonSchema } from '../report/schema.ts'
import { print } from './session.ts'

export async function eventsCommand(): Promise<number> {
  print(JSON.stringify(eventJsonSchema(), null, 2))
  return 0
}
