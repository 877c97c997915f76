// What an operation came to, from what the library printed: it throws nothing. Pure.

import { RemoteError } from '../remote/objects.ts'

/** What the store can live with. `damaged`: an entry is there and does not unpack; `gone`: it is listed and not there;
 *  `taken`: one of this key is there, or is being written. */
export interface Setback {
  readonly type: 'damaged' | 'gone' | 'taken' | 'read-only' | 'disk-full'
  readonly message: string
}

export type Trouble = Setback | { readonly type: 'service'; readonly error: RemoteError }

/** Undefined where nothing went wrong. @param token never repeated */
export function troubleIn(text: string, token: string): Trouble | undefined {
  const said = (
    text.match(/^(::(warning|error)[^\n]*|Failed to save[^\n]*|Cache \w+ skipped[^\n]*)$/gm) ?? []
  ).map((line) => clean(line, token))
  // Why a place was not given is only in the lines for debugging.
  const refused = text.match(/^::debug::Failed to reserve cache: ([^\n]*)$/m)?.[1]
  if (refused !== undefined) said.push(clean(refused, token))
  if (said.length === 0) return undefined
  const message = said.at(-1) ?? ''
  return judge(said.join('\n'), text, message)
}

function judge(said: string, text: string, message: string): Trouble {
  if (/No space left on device|ENOSPC/.test(text)) return { type: 'disk-full', message }
  if (/cache write denied|cache-mode|read.?only/i.test(said)) return { type: 'read-only', message }
  if (/already.?exists?|\(409\)|Response was not ok|another job may be (creating|finalizing)/i.test(said)) {
    const isTaken = !/\((401|403|404|429|5\d\d)\)|E[A-Z]{4,}|attempts/.test(said)
    if (isTaken) return { type: 'taken', message }
  }
  if (/(tar|zstd)\S* failed with error|unexpected end|Incomplete download|does not match/i.test(said))
    return { type: 'damaged', message }
  if (/BlobNotFound|specified blob does not exist|HTTP response: 404/.test(said))
    return { type: 'gone', message }
  return { type: 'service', error: toRemoteError(said, message) }
}

function toRemoteError(said: string, message: string): RemoteError {
  if (/\b40[13]\b|denied|ACTIONS_RUNTIME_TOKEN/.test(said))
    return new RemoteError('forbidden', message, 'the token of the job has expired or may not use the cache')
  if (/\b429\b|rate.?limit/i.test(said))
    return new RemoteError('throttled', message, 'the service has had enough requests for now')
  if (/timed? ?out/i.test(said)) return new RemoteError('timeout', message, 'repeat it')
  if (/ECONNREFUSED|ENOTFOUND|EAI_AGAIN|ECONNRESET|EHOSTUNREACH|Unable to make request/.test(said))
    return new RemoteError('unreachable', message, 'look at the network of the runner')
  return new RemoteError('server', message, 'repeat it')
}

/** One line without commands of the runner, without the paths of addresses, which are as good as a token, without the token. */
function clean(line: string, token: string): string {
  const plain = line.replace(/^::\w+[^:]*::/, '').replaceAll(/(https?:\/\/[^\s/?"']+)[^\s"']*/g, '$1')
  return (token ? plain.replaceAll(token, '***') : plain).trim()
}
