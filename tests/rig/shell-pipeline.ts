// Text of a pipeline.ts whose stages are one-line shell scripts: what most end-to-end tests need.

export interface ShellStage {
  /** Shell text; `$a` is the path of input `a`, `$out` of the only output. */
  readonly sh: string
  /** Input name -> `stage` (its output `out`), or a path with a slash or dot (a source file). */
  readonly inputs?: Readonly<Record<string, string>>
  /** Further fields of defineStage, as TypeScript text. */
  readonly more?: string
}

/** A pipeline with one stage a row, in order; each has one file output, `out`.
 *  @param more further fields of definePipeline, as TypeScript text */
export function shellPipeline(stages: Readonly<Record<string, ShellStage>>, more = ''): string {
  const definitions = Object.entries(stages).map(([name, stage]) => definition(name, stage))
  const uses = Object.entries(stages).map(([name, stage]) => use(name, stage))
  return `import { definePipeline, defineStage, file, sourceFile } from 'hessian-pilot'
${definitions.join('\n')}
export default definePipeline({
  ${more}
  stages: () => {
${uses.join('\n')}
    return [${Object.keys(stages).map(variable).join(', ')}]
  },
})
`
}

function definition(name: string, { sh, inputs = {}, more = '' }: ShellStage): string {
  const names = Object.keys(inputs)
  const variables = names.map((input) => `${input}="$1"; shift; `).join('')
  const script = `${variables}out="$1"; ${sh}`
  return `const ${variable(name)}Stage = defineStage({
  name: ${JSON.stringify(name)},
  inputs: { ${names.map((input) => `${input}: file()`).join(', ')} },
  outputs: { out: file('out') },
  run: ({ inputs, outputs }) => ['sh', '-c', ${JSON.stringify(script)}, 'sh', ${names.map((input) => `inputs.${input}, `).join('')}outputs.out],
  ${more}
})`
}

function use(name: string, { inputs = {} }: ShellStage): string {
  const wiring = Object.entries(inputs).map(([input, from]) =>
    /[./]/.test(from)
      ? `${input}: sourceFile(${JSON.stringify(from)})`
      : `${input}: ${variable(from)}.outputs.out`,
  )
  const argument = wiring.length > 0 ? `{ inputs: { ${wiring.join(', ')} } }` : '{}'
  return `    const ${variable(name)} = ${variable(name)}Stage(${argument})`
}

function variable(name: string): string {
  return `s_${name.replaceAll(/[^A-Za-z0-9]/g, '_')}`
}
