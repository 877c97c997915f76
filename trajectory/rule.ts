// The rules of hessian.trajectory.v1: their names, what each demands and what to do about a breach. Nothing is checked here.

/** Rule name -> [what it demands, as a claim about the place it names; what to do]. */
export const RULES = {
  'file.empty': ['the file holds no episode', 'write at least one row'],
  'file.bom': ['the file starts with a byte order mark', 'save it as UTF-8 without a BOM'],
  'file.encoding': [
    'the row is not valid UTF-8',
    'encode the file as UTF-8, without surrogates or overlong forms',
  ],
  'file.blank_line': ['the row is blank', 'remove the line: each row holds one episode'],
  'json.syntax': [
    'the row is not one JSON value',
    'write one JSON object a line, as a strict JSON encoder does',
  ],
  'json.depth': ['the row is nested too deeply', 'a trajectory is at most five levels deep'],
  'json.duplicate_key': ['the key occurs twice in one object', 'keep one of the two'],
  'json.nonfinite': ['the number is not finite', 'write a finite number; drop the episode if there is none'],
  'string.lone_surrogate': [
    'the text holds half a surrogate pair',
    'cut text at code points, not at UTF-16 units',
  ],
  'field.missing': ['the field is missing', 'write it; what the source lacks is given by the launcher'],
  'field.unknown': ['the field is not part of the contract', 'remove it, or keep it in a file of its own'],
  'type.object': ['an object is wanted', 'write a JSON object'],
  'type.array': ['an array is wanted', 'write a JSON array; leave an optional field out instead of null'],
  'type.string': ['a string is wanted', 'write a JSON string'],
  'type.integer': ['an integer is wanted', 'write it without fraction or exponent: 1, not 1.0'],
  'type.number': ['a number is wanted', 'write a JSON number'],
  'integer.negative': ['a nonnegative integer is wanted', 'write 0 or more'],
  schema_version: [
    'the schema version is not "hessian.trajectory.v1"',
    'write exactly hessian.trajectory.v1',
  ],
  'identifier.empty': ['the identifier is empty or only white space', 'give it a name'],
  'enum.source_kind': [
    'the source kind is not one of captured, fixture',
    'write captured for real inference',
  ],
  'enum.finish_reason': [
    'the finish reason is not one of stop, length, tool_calls',
    'map the reason of the source onto these, or record the episode as a diagnostic',
  ],
  'role.response': [
    'the role of a response is not assistant',
    'move tool output to the next prompt and context',
  ],
  'role.context': [
    'the role is not one of system, user, assistant, tool',
    'map the role of the source onto these',
  ],
  'revision.mutable': ['the revision is a mutable alias', 'write the commit or a content digest'],
  'sha256.format': ['the digest is not 64 lowercase hex digits', 'write the output of sha256sum'],
  'calls.empty': ['the episode has no call', 'record at least one inference call'],
  'call_id.duplicate': ['the call id occurs twice in one episode', 'number the calls of an episode'],
  'mask.length': ['the mask is not as long as the response', 'write one 0 or 1 for each response token'],
  'mask.value': ['the mask item is not the integer 0 or 1', 'write 1 for a trainable token, otherwise 0'],
  'mask.no_trainable': ['the episode has no trainable token', 'leave out episodes that train nothing'],
  'logprob.length': [
    'there are not as many log probabilities as response tokens',
    'write one for each response token',
  ],
  'logprob.positive': [
    'the log probability is positive',
    'write natural logarithms of probabilities: 0 or less',
  ],
  'episode_id.duplicate': ['the episode id occurs twice in the file', 'give each rollout its own id'],
  'group.inconsistent': [
    'the group holds episodes of another task, policy, harness or scorer',
    'a group holds comparable rollouts: give this episode a group of its own',
  ],
} as const satisfies Record<string, readonly [claim: string, hint: string]>

/** Name of a rule of the contract; names are never reused. */
export type Rule = keyof typeof RULES
