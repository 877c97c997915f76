// The DAG as text, mermaid, dot or svg. Pure: the same stages give the same bytes.

import { formatTable } from './status.ts'

export type GraphFormat = 'text' | 'mermaid' | 'dot' | 'svg'

export interface DiagramNode {
  readonly stage: string
  /** Names of the stages whose outputs it reads. */
  readonly needs: readonly string[]
  /** Names of its outputs. */
  readonly outputs: readonly string[]
}

/** @param nodes each after those it needs */
export function formatGraph(nodes: readonly DiagramNode[], format: GraphFormat): string {
  return FORMATS[format](nodes)
}

const FORMATS: Readonly<Record<GraphFormat, (nodes: readonly DiagramNode[]) => string>> = {
  text: toText,
  mermaid: toMermaid,
  dot: toDot,
  svg: toSvg,
}

function toText(nodes: readonly DiagramNode[]): string {
  const rows = nodes.map(({ stage, needs, outputs }) => [stage, needs.join(', ') || '-', outputs.join(', ')])
  return formatTable([['stage', 'needs', 'outputs'], ...rows])
}

/** Stage names hold letters, digits, `.`, `_` and `-` only; ids of mermaid take fewer, so nodes are numbered. */
function toMermaid(nodes: readonly DiagramNode[]): string {
  const idOf = new Map(nodes.map(({ stage }, i) => [stage, `s${i}`]))
  const boxes = nodes.map(({ stage }, i) => `  s${i}["${stage}"]`)
  const arrows = nodes.flatMap(({ needs }, i) => needs.map((from) => `  ${idOf.get(from)} --> s${i}`))
  return ['flowchart LR', ...boxes, ...arrows].join('\n')
}

function toDot(nodes: readonly DiagramNode[]): string {
  const quote = (name: string): string => JSON.stringify(name)
  const boxes = nodes.map(({ stage }) => `  ${quote(stage)};`)
  const arrows = nodes.flatMap(({ stage, needs }) =>
    needs.map((from) => `  ${quote(from)} -> ${quote(stage)};`),
  )
  return ['digraph pilot {', '  rankdir=LR;', '  node [shape=box];', ...boxes, ...arrows, '}'].join('\n')
}

const BOX = { height: 32, gapX: 56, gapY: 16, margin: 16, charWidth: 8, padding: 24 }

interface Box {
  readonly x: number
  readonly y: number
  readonly width: number
}

function toSvg(nodes: readonly DiagramNode[]): string {
  const boxes = layOut(nodes)
  const all = [...boxes.values()]
  const width = Math.max(0, ...all.map((box) => box.x + box.width)) + BOX.margin
  const height = Math.max(0, ...all.map((box) => box.y + BOX.height)) + BOX.margin
  const arrows = nodes.flatMap(({ stage, needs }) =>
    needs.map((from) => toArrow(boxes.get(from), boxes.get(stage))),
  )
  const rects = nodes.map(({ stage }) => toRect(stage, boxes.get(stage)))
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="monospace" font-size="13">`,
    '<defs><marker id="head" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto"><path d="M0 0L8 4L0 8z"/></marker></defs>',
    ...arrows,
    ...rects,
    '</svg>',
  ].join('\n')
}

/** Columns by the longest way from a start; rows in the order given. */
function layOut(nodes: readonly DiagramNode[]): ReadonlyMap<string, Box> {
  const columnOf = new Map<string, number>()
  for (const { stage, needs } of nodes) {
    columnOf.set(stage, Math.max(0, ...needs.map((from) => (columnOf.get(from) ?? 0) + 1)))
  }
  const columns: string[][] = []
  for (const { stage } of nodes) {
    const column = columnOf.get(stage) ?? 0
    columns[column] = [...(columns[column] ?? []), stage]
  }
  const boxes = new Map<string, Box>()
  let x = BOX.margin
  for (const column of columns) {
    const width = Math.max(...column.map((stage) => stage.length * BOX.charWidth + BOX.padding))
    column.forEach((stage, row) => {
      boxes.set(stage, { x, y: BOX.margin + row * (BOX.height + BOX.gapY), width })
    })
    x += width + BOX.gapX
  }
  return boxes
}

function toRect(stage: string, box: Box | undefined): string {
  if (!box) return ''
  const { x, y, width } = box
  const middle = `x="${x + width / 2}" y="${y + BOX.height / 2 + 5}" text-anchor="middle"`
  return `<rect x="${x}" y="${y}" width="${width}" height="${BOX.height}" rx="4" fill="#fff" stroke="#000"/><text ${middle}>${stage}</text>`
}

function toArrow(from: Box | undefined, to: Box | undefined): string {
  if (!from || !to) return ''
  const [x1, y1] = [from.x + from.width, from.y + BOX.height / 2]
  const [x2, y2] = [to.x, to.y + BOX.height / 2]
  const bend = (x2 - x1) / 2
  return `<path d="M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}" fill="none" stroke="#000" marker-end="url(#head)"/>`
}
