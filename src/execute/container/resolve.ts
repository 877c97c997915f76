// A tag -> the digest it stands for at this moment. Asked by `pilot lock` only.

import { PilotError } from '../../model/error.ts'
import { ask, type HostEnvironment, lastWord, onPath, openRuntime, toStrings } from './runtime.ts'

/** By skopeo, which asks the registry and fetches nothing; without it by pulling the image.
 *  @throws PilotError `image-unresolved` */
export async function resolveTag(image: string, host: HostEnvironment): Promise<string> {
  const skopeo = onPath('skopeo', host)
  const answer = skopeo ? await inspect(skopeo, image, host) : await pull(image, host)
  const digest = /sha256:[0-9a-f]{64}/.exec(answer.stdout)?.[0]
  if (answer.code === 0 && digest !== undefined) return digest
  throw new PilotError({
    code: 'image-unresolved',
    blame: 'environment',
    what: `the digest of image "${image}" is not known: ${lastWord(answer.stderr)}`,
    hint: 'check the name, and that its registry can be reached from here',
  })
}

function inspect(skopeo: string, image: string, host: HostEnvironment): ReturnType<typeof ask> {
  const words = ['inspect', '--no-tags', '--format', '{{.Digest}}', `docker://${image}`]
  return ask({ command: [skopeo], environment: toStrings(host) }, words)
}

async function pull(image: string, host: HostEnvironment): ReturnType<typeof ask> {
  const runtime = await openRuntime(host)
  const pulled = await ask(runtime, ['pull', '--quiet', image])
  if (pulled.code !== 0) return pulled
  const known = await ask(runtime, ['image', 'inspect', '--format', '{{json .RepoDigests}}', image])
  const name = image.slice(0, image.lastIndexOf(':'))
  // One image may have come by several names; a short name stands for one with its registry before it.
  const digests: unknown = JSON.parse(known.stdout || '[]')
  const own = Array.isArray(digests) ? digests.map(String).find((entry) => isOf(entry, name)) : undefined
  return { ...known, stdout: own ?? '' }
}

function isOf(entry: string, name: string): boolean {
  const [at = ''] = entry.split('@')
  return at === name || at.endsWith(`/${name}`)
}
