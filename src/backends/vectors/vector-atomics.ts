/** Packs atomic updates of neighbouring elements into vector atomics (such as `red.v4`). */

import { load } from '../../ir/expressions/expr.ts'
import { readsSome } from '../../ir/expressions/expr-tree.ts'
import type { Reduce, Stmt } from '../../ir/statements/loops.ts'
import { vectorStore } from '../../ir/statements/statement-builders.ts'
import type { Body } from '../../ir/statements/tree.ts'

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
  readonly index: number
}

/**
 * Moves each complete vector of updates to the position of its first update; no statement in between changes operands of the
 * later updates.
 */
export function packAtomics(list: Body, n: Neighbours): Body {
  const replacements = new Map<number, Stmt | null>()
  let run: Member[] = []
  let stored = new Set<string>()
  const flush = (): void => {
    pack(run, n, replacements)
    run = []
    stored = new Set()
  }
  list.forEach((s, index) => {
    if (s.kind === 'let') return
    const element = s.kind === 'reduce' ? n.element(s) : undefined
    if (s.kind === 'reduce' && element) {
      const isOtherBase = run[0] && run[0].key !== element.key
      if (isOtherBase || [...s.values, ...s.targets[0]!.index].some((v) => readsSome(v, stored))) flush()
      run.push({ reduce: s, ...element, index })
    } else if (s.kind === 'store' && run.length > 0 && run[0]!.reduce.targets[0]!.buffer !== s.buffer)
      stored.add(s.buffer)
    else flush()
  })
  flush()
  if (replacements.size === 0) return list
  return list.flatMap((s, k): Body => {
    const replacement = replacements.get(k)
    return replacement === undefined ? [s] : replacement === null ? [] : [replacement]
  })
}

function pack(run: readonly Member[], n: Neighbours, replacements: Map<number, Stmt | null>): void {
  const byConstant = new Map(run.map((m) => [m.constant, m]))
  if (run.length < 2 || byConstant.size < run.length) return
  // The address of the first element has to be defined at the first update.
  const isOrdered = ([first, ...others]: readonly Member[]): boolean =>
    others.every((m) => m.index > first!.index)
  for (const { members } of completeVectors(byConstant, n.widths(run[0]!.reduce), isOrdered)) {
    const { reduce, index } = members[0]!
    const target = reduce.targets[0]!
    const values = members.map((m) => m.reduce.values[0]!)
    for (const m of members) replacements.set(m.index, null)
    const first = load(target.buffer, target.index, target.dtype)
    replacements.set(index, vectorStore(first, values, reduce.reducer.name))
  }
}

/** Complete aligned vectors of elements with consecutive offsets, in the order of `widths`; an element is in one vector only. */
export function* completeVectors<T>(
  byOffset: ReadonlyMap<number, T>,
  widths: readonly number[],
  accepts: (members: readonly T[]) => boolean = () => true,
): Generator<{ readonly offset: number; readonly members: readonly T[] }> {
  const packed = new Set<number>()
  for (const width of widths)
    for (const offset of byOffset.keys()) {
      const offsets = Array.from({ length: width }, (_, k) => offset + k)
      if (offset % width !== 0 || offsets.some((k) => packed.has(k) || !byOffset.has(k))) continue
      const members = offsets.map((k) => byOffset.get(k)!)
      if (!accepts(members)) continue
      for (const k of offsets) packed.add(k)
      yield { offset, members }
    }
}
