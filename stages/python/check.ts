// check.ts SERIES: says which CPython of that series the stages would take here, by its absolute path; exits 1 and says
// what was looked at where there is none. What `pilot doctor` runs.

import { tmpdir } from 'node:os'
import { explainMissing, findInterpreter, searchFacts } from '../launcher/interpreter.ts'

const [series = ''] = process.argv.slice(2)
try {
  const found = findInterpreter(series, searchFacts(process.env['PILOT_MACHINE_DIR'] ?? tmpdir()))
  if (found.interpreter) console.log(`CPython ${found.interpreter.version}  ${found.interpreter.path}`)
  else throw new Error(explainMissing(series, found.looked))
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : error}\n`)
  process.exitCode = 1
}
