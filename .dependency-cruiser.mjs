// The import rules of docs/design.md ("Parts"), each with the reason it is there.

const PHASES = '^src/(declare|plan|execute|capture|store|report)/'
const CONTENT = '^(pipeline\\.ts|stages/|recipes/)'

export default {
  forbidden: [
    {
      name: 'phases-are-strangers',
      comment:
        'A phase that knows another cannot be replaced or tested without it; the conductor joins them.',
      severity: 'error',
      from: { path: PHASES },
      to: { path: PHASES, pathNot: '^src/$1/' },
    },
    {
      name: 'model-knows-nothing',
      comment: 'The nouns are what all the others agree on.',
      severity: 'error',
      from: { path: '^src/model/' },
      to: { path: '^(src|trajectory)/', pathNot: '^src/model/' },
    },
    {
      name: 'core-is-pure',
      comment: 'What decides does no I/O: the same state gives the same plan.',
      severity: 'error',
      from: { path: '^src/(model|plan)/' },
      to: { dependencyTypes: ['core', 'npm', 'npm-dev'], pathNot: '^(node:)?crypto$' },
    },
    {
      name: 'phases-below-run',
      comment: 'Only the outer parts know the main path, the command line and the environment.',
      severity: 'error',
      from: { path: ['^src/model/', PHASES] },
      to: { path: '^src/(conduct/|commands/|run\\.ts|cli\\.ts|config\\.ts|index\\.ts)' },
    },
    {
      name: 'content-through-index',
      comment: 'A stage here is word for word what a stranger writes in their own project.',
      severity: 'error',
      from: { path: CONTENT },
      to: { path: '^(src|trajectory)/', pathNot: '^(src|trajectory)/index\\.ts$' },
    },
    {
      name: 'engine-knows-no-content',
      comment: 'The engine would be the same for any project.',
      severity: 'error',
      from: { path: '^(src|trajectory)/' },
      to: { path: [CONTENT, '^tests/'] },
    },
    {
      name: 'trajectory-stands-alone',
      comment: 'The contract is usable without the workflow tool.',
      severity: 'error',
      from: { path: '^trajectory/' },
      to: { path: '^src/', pathNot: '^src/model/' },
    },
    {
      name: 'one-sdk-one-file',
      comment: 'A library that is heavy, or that we may have to change, is known in one place.',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/(store/(s3|actions-cache)/|store/bundle\\.ts|report/live)' },
      to: { path: '^node_modules/(@aws-sdk|@actions|tar-stream|listr2)/' },
    },
    { name: 'no-cycles', severity: 'error', from: {}, to: { circular: true } },
    { name: 'not-to-unresolvable', severity: 'error', from: {}, to: { couldNotResolve: true } },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    exclude: { path: '(^|/)(dist|artifacts|__pycache__)/' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['source', 'import', 'node', 'default'],
      extensions: ['.ts', '.mjs', '.js', '.json'],
    },
  },
}
