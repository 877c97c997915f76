// A second opinion for the fuzz tests: is a file valid, yes or no? Written from the contract's text on its own terms - a recursive
// descent over a decoded string, numbers kept as text - and sharing no code with trajectory/.

type Node =
  | { readonly type: 'object'; readonly fields: Map<string, Node> }
  | { readonly type: 'array'; readonly items: readonly Node[] }
  | { readonly type: 'string' | 'number' | 'word'; readonly text: string }

/** @returns undefined for a valid file, otherwise a reason */
export function whyInvalid(bytes: Uint8Array): string | undefined {
  try {
    judgeFile(bytes)
    return undefined
  } catch (error) {
    if (error instanceof Reason) return error.message
    throw error
  }
}

class Reason extends Error {}

function want(holds: boolean, reason: string): asserts holds {
  if (!holds) throw new Reason(reason)
}

function judgeFile(bytes: Uint8Array): void {
  let text: string
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    throw new Reason('encoding')
  }
  const rows = text.split('\n')
  if (rows.at(-1) === '') rows.pop()
  want(rows.length > 0, 'no row')
  const ids = new Set<string>()
  const groups = new Map<string, string>()
  for (const row of rows) {
    const episode = judgeEpisode(parse(row))
    want(!ids.has(episode.id), 'episode id twice')
    ids.add(episode.id)
    want((groups.get(episode.group) ?? episode.identity) === episode.identity, 'group')
    groups.set(episode.group, episode.identity)
  }
}

function parse(row: string): Node {
  let at = 0
  const take = (pattern: RegExp): string | undefined => {
    pattern.lastIndex = at
    const found = pattern.exec(row)?.[0]
    at += found?.length ?? 0
    return found
  }
  const space = () => take(/[ \t\r]*/y)
  const value = (depth: number): Node => {
    want(depth < 900, 'depth')
    space()
    const node = object(depth) ?? array(depth) ?? scalar()
    want(node !== undefined, `syntax at ${at}`)
    space()
    return node
  }
  const string = (): string | undefined => {
    const token = take(/"(?:[^"\\\0-\x1f]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*"/y)
    if (token === undefined) return undefined
    const text: string = JSON.parse(token)
    want(!/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/.test(text), 'surrogate')
    return text
  }
  const object = (depth: number): Node | undefined => {
    if (take(/\{/y) === undefined) return undefined
    const fields = new Map<string, Node>()
    space()
    if (take(/\}/y) !== undefined) return { type: 'object', fields }
    do {
      space()
      const key = string()
      want(key !== undefined, 'key')
      want(!fields.has(key), 'key twice')
      space()
      want(take(/:/y) !== undefined, 'colon')
      fields.set(key, value(depth + 1))
    } while (take(/,/y) !== undefined)
    want(take(/\}/y) !== undefined, 'brace')
    return { type: 'object', fields }
  }
  const array = (depth: number): Node | undefined => {
    if (take(/\[/y) === undefined) return undefined
    const items: Node[] = []
    space()
    if (take(/\]/y) !== undefined) return { type: 'array', items }
    do items.push(value(depth + 1))
    while (take(/,/y) !== undefined)
    want(take(/\]/y) !== undefined, 'bracket')
    return { type: 'array', items }
  }
  const scalar = (): Node | undefined => {
    const number = take(/-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y)
    if (number !== undefined) return { type: 'number', text: number }
    const word = take(/true|false|null/y)
    if (word !== undefined) return { type: 'word', text: word }
    const text = string()
    return text === undefined ? undefined : { type: 'string', text }
  }
  const node = value(0)
  want(at === row.length, 'trailing')
  walk(node)
  return node
}

/** Numbers anywhere, in unknown fields too. */
function walk(node: Node): void {
  if (node.type === 'object') for (const field of node.fields.values()) walk(field)
  if (node.type === 'array') for (const item of node.items) walk(item)
  if (node.type !== 'number') return
  if (/^-?\d+$/.test(node.text)) want(node.text.replace('-', '').length <= 4300, 'digits')
  else want(Number.isFinite(Number(node.text)), 'overflow')
}

const EPISODE = 'schema_version episode_id task_id group_id seed source_kind policy harness reward calls'
const CALL =
  'call_id prompt_token_ids response_token_ids response_role response_loss_mask finish_reason context'
const POLICY = 'model_id revision tokenizer_id tokenizer_revision chat_template_sha256'

function judgeEpisode(node: Node): { id: string; group: string; identity: string } {
  const get = fieldsOf(node, EPISODE)
  want(textOf(get('schema_version')) === 'hessian.trajectory.v1', 'version')
  const [id, task, group] = ['episode_id', 'task_id', 'group_id'].map((name) => nameOf(get(name)))
  judgeInteger(get('seed'))
  want(['captured', 'fixture'].includes(textOf(get('source_kind'))), 'kind')
  const policy = fieldsOf(get('policy'), POLICY)
  want(/^[0-9a-f]{64}$/.test(textOf(policy('chat_template_sha256'))), 'sha256')
  const harness = fieldsOf(get('harness'), 'name version revision')
  const reward = fieldsOf(get('reward'), 'value scorer scorer_revision')
  judgeNumber(reward('value'))
  const identity = [
    ...[
      policy('model_id'),
      policy('tokenizer_id'),
      harness('name'),
      harness('version'),
      reward('scorer'),
    ].map(nameOf),
    ...[policy('revision'), policy('tokenizer_revision'), harness('revision'), reward('scorer_revision')].map(
      revisionOf,
    ),
  ]
  const calls = itemsOf(get('calls'))
  want(calls.length > 0, 'no call')
  const judged = calls.map(judgeCall)
  want(new Set(judged.map((call) => call.id)).size === calls.length, 'call id twice')
  want(
    judged.some((call) => call.trains),
    'nothing trainable',
  )
  const sha256 = textOf(policy('chat_template_sha256'))
  return { id: id ?? '', group: group ?? '', identity: JSON.stringify([task, sha256, ...identity]) }
}

function judgeCall(node: Node): { id: string; trains: boolean } {
  const get = fieldsOf(node, CALL, 'behavior_logprobs')
  const id = nameOf(get('call_id'))
  itemsOf(get('prompt_token_ids')).forEach(judgeInteger)
  const response = itemsOf(get('response_token_ids'))
  response.forEach(judgeInteger)
  want(textOf(get('response_role')) === 'assistant', 'response role')
  const mask = itemsOf(get('response_loss_mask')).map((bit) => {
    want(bit.type === 'number' && /^(?:-?0|1)$/.test(bit.text), 'mask')
    return bit.text === '1'
  })
  want(mask.length === response.length, 'mask length')
  want(['stop', 'length', 'tool_calls'].includes(textOf(get('finish_reason'))), 'finish')
  for (const message of itemsOf(get('context'))) {
    const field = fieldsOf(message, 'role content')
    want(['system', 'user', 'assistant', 'tool'].includes(textOf(field('role'))), 'role')
    textOf(field('content'))
  }
  if (node.type === 'object' && node.fields.has('behavior_logprobs')) {
    const logprobs = itemsOf(get('behavior_logprobs'))
    want(logprobs.length === response.length, 'logprob length')
    for (const item of logprobs) want(judgeNumber(item) <= 0, 'positive')
  }
  return { id, trains: mask.includes(true) }
}

function fieldsOf(node: Node, names: string, optional = ''): (name: string) => Node {
  want(node.type === 'object', 'object')
  const known = names.split(' ')
  for (const name of known) want(node.fields.has(name), `no ${name}`)
  for (const name of node.fields.keys()) want(known.includes(name) || name === optional, `unknown ${name}`)
  return (name) => {
    const field = node.fields.get(name)
    want(field !== undefined, `no ${name}`)
    return field
  }
}

function itemsOf(node: Node): readonly Node[] {
  want(node.type === 'array', 'array')
  return node.items
}

function textOf(node: Node): string {
  want(node.type === 'string', 'string')
  return node.text
}

/** Nonempty once Python's white space is gone: code points listed from CPython's `str.isspace`. */
const PYTHON_SPACE = new Set(
  [9, 10, 11, 12, 13, 28, 29, 30, 31, 32, 133, 160, 5760, 8232, 8233, 8239, 8287, 12288]
    .concat(Array.from({ length: 11 }, (_, i) => 8192 + i))
    .map((code) => String.fromCodePoint(code)),
)

function nameOf(node: Node): string {
  const text = textOf(node)
  want(
    [...text].some((c) => !PYTHON_SPACE.has(c)),
    'blank',
  )
  return text
}

/** Only the aliases that the fuzz tests plant. */
function revisionOf(node: Node): string {
  const text = nameOf(node)
  const stripped = [...text].filter((c) => !PYTHON_SPACE.has(c)).join('')
  want(!/^(?:main|master|latest|head|refs\/heads\/.*|origin\/.*)$/i.test(stripped), 'alias')
  return text
}

function judgeInteger(node: Node): void {
  want(node.type === 'number' && /^(?:-0|\d+)$/.test(node.text), 'integer')
}

function judgeNumber(node: Node): number {
  want(node.type === 'number' && Number.isFinite(Number(node.text)), 'number')
  return Number(node.text)
}
