// A persistent leftist heap: insert and take in O(log n), and an old version stays valid - which is what lets the
// scheduler be a pure function without copying its queue.

export type Heap = Node | null

interface Node {
  readonly item: number
  readonly priority: number
  readonly rank: number
  readonly left: Heap
  readonly right: Heap
}

export function insert(heap: Heap, item: number, priority: number): Heap {
  return merge({ item, priority, rank: 1, left: null, right: null }, heap)
}

/** The item of highest priority (lowest item among equals) and the heap without it. */
export function take(heap: Heap): readonly [item: number, rest: Heap] | undefined {
  return heap === null ? undefined : [heap.item, merge(heap.left, heap.right)]
}

function merge(a: Heap, b: Heap): Heap {
  if (a === null) return b
  if (b === null) return a
  const [top, other] = isBefore(a, b) ? [a, b] : [b, a]
  const right = merge(top.right, other)
  const [l, r] = rankOf(top.left) >= rankOf(right) ? [top.left, right] : [right, top.left]
  return { item: top.item, priority: top.priority, rank: rankOf(r) + 1, left: l, right: r }
}

function isBefore(a: Node, b: Node): boolean {
  return a.priority > b.priority || (a.priority === b.priority && a.item < b.item)
}

function rankOf(heap: Heap): number {
  return heap === null ? 0 : heap.rank
}
