// The words the contract allows in its enumerated fields.
export const SCHEMA_VERSION = 'hessian.trajectory.v1'
export const SOURCE_KINDS = ['captured', 'fixture'] as const
export const FINISH_REASONS = ['stop', 'length', 'tool_calls'] as const
export const CONTEXT_ROLES = ['system', 'user', 'assistant', 'tool'] as const
