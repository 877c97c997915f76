// The adoption pilot: one real PPO update of a policy through a pinned upstream, and what may be said of it.

import { definePipeline, sourceFile, sourceTree } from 'hessian-pilot'
import { z } from 'zod'
import { accept } from './stages/accept/stage.ts'
import {
  aggregation,
  aggregationParams,
  audit,
  auditParams,
  failedWorker,
  failedWorkerParams,
} from './stages/audit/stage.ts'
import { base, baseParams } from './stages/base/stage.ts'
import { source } from './stages/checkout/source.ts'
import { checkout } from './stages/checkout/stage.ts'
import { evaluate, evaluateParams, evaluatePolicy, evaluationParams } from './stages/evaluate/stage.ts'
import { ppoStep, ppoStepParams } from './stages/ppo-step/stage.ts'
import { reload } from './stages/reload/stage.ts'
import { sync } from './stages/sync/stage.ts'

const recipe = z.strictObject({
  name: z.literal('calculator'),
  source,
  /** Series of the interpreter. */
  python: z.string(),
  /** Hashed requirements. */
  lock: z.string(),
  base: baseParams,
  ppoStep: ppoStepParams,
  /** Of both policies alike. */
  evaluation: evaluationParams,
  evaluate: evaluateParams,
  audit: auditParams,
  failedWorker: failedWorkerParams,
  aggregation: aggregationParams,
})

export default definePipeline({
  recipe,
  defaultRecipe: 'calculator',
  locks: {
    calculator: ['{node}', 'stages/python/lock.ts', 'locks/calculator'],
    tools: ['{node}', 'stages/python/lock.ts', 'locks/tools'],
  },
  checks: (recipe) => ({ python: ['{node}', 'stages/python/check.ts', recipe.python] }),
  stages: (recipe) => {
    const launcher = sourceTree('stages/launcher')
    const lib = sourceTree('stages/lib')
    const upstream = checkout({ params: recipe.source, inputs: { launcher } })
    const locked = sync({
      params: { python: recipe.python },
      inputs: { lock: sourceFile(recipe.lock), tools: sourceTree('locks/tools'), launcher },
    })
    const shared = { environment: locked.outputs.environment, launcher, lib }
    const frozen = base({ params: recipe.base, inputs: shared })
    const { policy: behaviour, questions } = frozen.outputs
    const gateway = { ...shared, upstream: upstream.outputs.source, questions }
    const step = ppoStep({ params: recipe.ppoStep, inputs: { ...gateway, policy: behaviour } })
    const { policy: adapted, record } = step.outputs
    const reloaded = reload({ inputs: { ...shared, policy: adapted, behaviour, record } })
    const evaluated = (name: string, policy: typeof behaviour) =>
      evaluatePolicy({ name, params: recipe.evaluation, inputs: { ...gateway, policy } })
    const before = evaluated('evaluate-baseline', behaviour)
    const after = evaluated('evaluate-adapted', adapted)
    const verdict = evaluate({
      params: recipe.evaluate,
      inputs: {
        ...{ ...shared, questions, reload: reloaded.outputs.report },
        ...{ baseline: before.outputs.record, adapted: after.outputs.record },
      },
    })

    const again = ppoStep({
      name: 'ppo-step-again',
      params: { ...recipe.ppoStep, repetition: recipe.ppoStep.repetition + 1 },
      inputs: { ...gateway, policy: behaviour },
    })
    const trainer = sourceTree('stages/ppo-step')
    const audited = audit({
      params: recipe.audit,
      inputs: { ...shared, record, behaviour, questions, trainer },
    })
    const killed = failedWorker({
      params: recipe.failedWorker,
      inputs: { ...shared, policy: behaviour, questions },
    })
    const levels = aggregation({
      params: recipe.aggregation,
      inputs: { ...shared, policy: behaviour, questions, trainer },
    })
    const accepted = accept({
      inputs: {
        ...{ ...shared, base: behaviour, adapted, repeated: again.outputs.policy },
        ...{ audit: audited.outputs.report, failedWorker: killed.outputs.report },
        ...{ aggregation: levels.outputs.report, reload: reloaded.outputs.report },
        verdict: verdict.outputs.verdict,
      },
    })
    return [
      ...[upstream, locked, frozen, step, reloaded, before, after, verdict],
      ...[again, audited, killed, levels, accepted],
    ]
  },
})
