/** Dimensions of copies: tiles of declared memories, and groups of loops that are the digits of one index (mixed radix). */
import { linear } from '../../../analysis/integers/linear.ts'
import { mixedRadix } from '../../../analysis/integers/mixed-radix.ts'
import { type Expr, int } from '../../../ir/expressions/expr.ts'
import { children, mentions, perExpr } from '../../../ir/expressions/expr-tree.ts'
import type { Memory } from '../../../ir/instructions/instr.ts'
import type { Buffer, For } from '../../../ir/statements/loops.ts'
import type { Context } from '../../state/context.ts'

/** Returns whether the last dimensions are multiples of the tile's dimensions. */
export function isOfTiles(shape: readonly number[], { shape: tile }: Memory): boolean {
  const last = shape.slice(-tile.length)
  return last.length === tile.length && last.every((n, d) => n % tile[d]! === 0)
}

/**
 * Returns the `memory` property of a copy. Throws `schedule/wrong-type` or `schedule/wrong-tile` unless the copy
 * consists of tiles of the memory.
 */
export function inMemory(
  cx: Context,
  loop: For,
  memory: Memory | undefined,
  copy: Pick<Buffer, 'name' | 'dtype'>,
  shape: readonly number[],
): Pick<Buffer, 'memory'> {
  if (!memory) return {}
  const tile = memory.shape
  if (copy.dtype !== memory.dtype)
    cx.refuse('schedule/wrong-type', [loop], {
      message: `${copy.name} holds ${copy.dtype}, and ${memory.name} ${memory.dtype}`,
      expected: `a memory of ${copy.dtype}`,
    })
  if (!isOfTiles(shape, memory))
    cx.refuse('schedule/wrong-tile', [loop], {
      message: `a copy of ${shape.join(' × ')} elements is made of no tiles of ${memory.name}`,
      expected: `last dimensions that are multiples of ${tile.join(' × ')}`,
      hint: 'split the loops, and reorder those of the tile inside',
    })
  return { memory }
}

export const extentOf = (l: For): number => (l.extent.kind === 'const' ? Math.max(1, l.extent.value) : 1)

interface StridedLoop {
  readonly loop: For
  readonly stride: number
}

type Groups = readonly (readonly StridedLoop[])[]

/**
 * Returns the loops of one index in groups, each with the outermost digit first: loops that are digits of one sum are a
 * group, and any other loop is a group by itself.
 */
export function grouped(e: Expr, loops: readonly For[]): Groups {
  if (loops.length === 0) return []
  const found = perExpr<Groups | undefined>((x, of) => groupsFrom(x, of, loops))(e)
  return found ?? loops.map((loop) => [{ loop, stride: 1 }])
}

/**
 * Returns the groups of loops whose variables are digits of the sum `e`. If `e` is not such a sum, its first operand
 * that mentions all loops is tried. Returns undefined if each group would have one loop.
 */
function groupsFrom(e: Expr, of: (e: Expr) => Groups | undefined, loops: readonly For[]): Groups | undefined {
  if (!loops.every((l) => mentions(e, l.var))) return undefined
  const places: StridedLoop[] = []
  const apart = new Set<For>()
  for (const { term, coefficient } of linear(e).terms.values()) {
    const loop = term.kind === 'var' ? loops.find((l) => l.var === term.name) : undefined
    if (loop) places.push({ loop, stride: coefficient })
    else for (const l of loops) if (mentions(term, l.var)) apart.add(l)
  }
  const runs = denseRuns(places.filter((p) => !apart.has(p.loop)))
  if (runs.some((r) => r.length > 1)) {
    const alone = loops.filter((l) => !runs.some((r) => r.some((p) => p.loop === l)))
    const all = [...runs, ...alone.map((loop) => [{ loop, stride: 1 }])]
    return all.sort((a, b) => loops.indexOf(a[0]!.loop) - loops.indexOf(b[0]!.loop))
  }
  for (const c of children(e)) {
    const found = of(c)
    if (found) return found
  }
  return undefined
}

/** Returns runs of consecutive digits without a gap; an empty list if the sum does not determine its digits. */
function denseRuns(places: readonly StridedLoop[]): Groups {
  const number = mixedRadix(
    [...places].reverse().map((p) => ({ of: p, stride: int(p.stride), extent: int(extentOf(p.loop)) })),
  )
  const runs: StridedLoop[][] = []
  for (const { of: p } of number?.digits ?? []) {
    const below = runs.at(-1)?.[0]
    if (below && below.stride * extentOf(below.loop) === p.stride) runs.at(-1)!.unshift(p)
    else runs.push([p])
  }
  return runs.reverse()
}
