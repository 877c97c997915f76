import { openLocalExecutor } from '../../src/execute/local.ts'
import { executorContract } from './executor.contract.ts'

executorContract({
  open: async (options) => openLocalExecutor(options),
  fields: () => ({}),
  isolation: 'workdir',
  adds: [],
})
