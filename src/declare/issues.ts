// What a zod schema found wrong, one line an issue with its path. Takes the issues as data, so that a pipeline
// without schemas does not load zod.

interface Issue {
  readonly path: readonly PropertyKey[]
  readonly message: string
}

export function formatIssues(issues: readonly Issue[]): string {
  return issues
    .map((issue) => `  ${issue.path.map(String).join('.') || '(root)'}: ${issue.message}`)
    .join('\n')
}
