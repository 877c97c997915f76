// The public door: what a pipeline.ts and its stages import as 'hessian-pilot'.

export type { Content, Handle, InputSpec, OutputSpec } from './declare/content.ts'
export { file, json, sourceFile, sourceJson, sourceTree, tree } from './declare/content.ts'
export { definePipeline } from './declare/pipeline.ts'
export type { RunContext, StageDefinition, StageUse } from './declare/stage.ts'
export { defineStage } from './declare/stage.ts'
export { PilotError } from './model/error.ts'
