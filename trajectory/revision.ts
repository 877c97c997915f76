// Which revisions are obvious mutable aliases: names that point at other content tomorrow. Applied to every *revision field.
import { strip } from './identifier.ts'

/** Names of branches and of moving tags. */
const ALIASES = new Set([
  ...['main', 'master', 'head', 'latest', 'trunk', 'tip', 'default', 'current', 'newest', '@'],
  ...['dev', 'devel', 'develop', 'development', 'nightly', 'stable', 'edge', 'canary', 'next'],
  ...['fetch_head', 'orig_head', 'merge_head'],
])

/** Prefixes of names that are branches whatever follows. */
const BRANCHES = /^(?:refs\/)?(?:heads|remotes)\/|^(?:origin|upstream)\//

/** `HEAD~2`, `main^`, `main^{commit}`, `main@{yesterday}`: counted from a moving name. */
const RELATIVE = /(?:~\d*|\^\d*|\^\{[^}]*\}|@\{[^}]*\})+$/

/** `org/main`, `org/model@main`, `image:latest`: the alias as the last part of a name. */
const LAST_PART = /[/@:](main|master|head|latest)$/

/** @returns whether a revision cannot be relied on to name the same content later. Case and outer white space do not matter. */
export function isMutableRevision(revision: string): boolean {
  const name = strip(revision).toLowerCase().replace(RELATIVE, '')
  return name === '' || ALIASES.has(name) || BRANCHES.test(name) || LAST_PART.test(name)
}
