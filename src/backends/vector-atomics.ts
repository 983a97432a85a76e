/** Vector atomics (`red.v4` and the like). Atomic updates of neighbouring elements as one. */

import { load } from '../ir/expr.ts'
import { readsSome } from '../ir/expr-tree.ts'
import type { Reduce, Stmt } from '../ir/loops.ts'
import { vectorStore } from '../ir/statement-builders.ts'
import type { Body } from '../ir/tree.ts'

export interface Neighbours {
  /** Base of an updated element (`key`) and its offset from the base (`constant`). */
  readonly element: (r: Reduce) => { readonly key: string; readonly constant: number } | undefined
  /** Widths of an atomic update at this base in elements, largest first. */
  readonly widths: (r: Reduce) => readonly number[]
}

interface Member {
  readonly reduce: Reduce
  readonly key: string
  readonly constant: number
  readonly at: number
}

/**
 * Moves each complete vector of updates to the position of its first update; nothing in between changes the operands of the
 * others.
 */
export function packAtomics(list: Body, n: Neighbours): Body {
  const replaced = new Map<number, Stmt | null>()
  let run: Member[] = []
  let changed = new Set<string>()
  const flush = (): void => {
    pack(run, n, replaced)
    run = []
    changed = new Set()
  }
  list.forEach((s, at) => {
    if (s.kind === 'let') return
    const element = s.kind === 'reduce' ? n.element(s) : undefined
    if (s.kind === 'reduce' && element) {
      const other = run[0] && run[0].key !== element.key
      if (other || [...s.values, ...s.targets[0]!.index].some((v) => readsSome(v, changed))) flush()
      run.push({ reduce: s, ...element, at })
    } else if (s.kind === 'store' && run.length > 0 && run[0]!.reduce.targets[0]!.buffer !== s.buffer)
      changed.add(s.buffer)
    else flush()
  })
  flush()
  if (replaced.size === 0) return list
  return list.flatMap((s, k): Body => {
    const now = replaced.get(k)
    return now === undefined ? [s] : now === null ? [] : [now]
  })
}

function pack(run: readonly Member[], n: Neighbours, replaced: Map<number, Stmt | null>): void {
  const by = new Map(run.map((m) => [m.constant, m]))
  if (run.length < 2 || by.size < run.length) return
  const done = new Set<number>()
  for (const width of n.widths(run[0]!.reduce))
    for (const constant of by.keys()) {
      if (constant % width !== 0) continue
      const members = Array.from({ length: width }, (_, k) => by.get(constant + k))
      // The address of the first element has to be known where the first update stands.
      if (members.some((m, k) => !m || done.has(constant + k) || m.at < members[0]!.at)) continue
      const [first] = members
      const target = first!.reduce.targets[0]!
      const values = members.map((m) => m!.reduce.values[0]!)
      for (const m of members) replaced.set(m!.at, null)
      replaced.set(
        first!.at,
        vectorStore(load(target.buffer, target.index, target.dtype), values, first!.reduce.reducer.name),
      )
      for (let k = 0; k < width; k++) done.add(constant + k)
    }
}
