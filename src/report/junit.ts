// The gate's checks as JUnit XML, which most CI systems show. Pure. What is not established is an error, not a skip:
// a skipped test is shown as green.

import type { Check, Judgement } from './gate.ts'

/** @param wallMs time of a stage's last run, for its own check */
export function formatJUnit({ checks }: Judgement, wallMs: (stage: string) => number | undefined): string {
  const kinds = [...new Set(checks.map(({ kind }) => kind))]
  const suites = kinds.flatMap((kind) => {
    const own = checks.filter((check) => check.kind === kind)
    return [
      `  <testsuite name="${kind}"${tally(own)}>`,
      ...own.flatMap((check) => toCase(check, wallMs)),
      '  </testsuite>',
    ]
  })
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<testsuites name="pilot gate"${tally(checks)}>`,
    ...suites,
    '</testsuites>',
    '',
  ].join('\n')
}

function tally(checks: readonly Check[]): string {
  const of = (verdict: Check['verdict']) => checks.filter((check) => check.verdict === verdict).length
  return ` tests="${checks.length}" failures="${of('fail')}" errors="${of('not established')}"`
}

function toCase(check: Check, wallMs: (stage: string) => number | undefined): readonly string[] {
  const ms = check.kind === 'stage' ? wallMs(check.stage) : undefined
  const time = ms === undefined ? '' : ` time="${(ms / 1000).toFixed(3)}"`
  const open = `    <testcase classname="${escapeXml(check.stage)}" name="${escapeXml(check.name)}"${time}`
  if (check.verdict === 'pass') return [`${open}/>`]
  const tag = check.verdict === 'fail' ? 'failure' : 'error'
  return [`${open}>`, `      <${tag} message="${escapeXml(check.found)}"/>`, '    </testcase>']
}

const ENTITIES: Readonly<Record<string, string>> = {
  ...{ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' },
  // Written out, or a reader turns them into spaces.
  ...{ '\t': '&#9;', '\n': '&#10;', '\r': '&#13;' },
}

/** For attributes. What XML 1.0 cannot hold at all (control characters) becomes U+FFFD, as half
 *  surrogates do when the text is written as UTF-8. */
function escapeXml(text: string): string {
  return text
    .replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, '\ufffd')
    .replace(/[&<>"\t\n\r]/g, (mark) => ENTITIES[mark] ?? mark)
}
