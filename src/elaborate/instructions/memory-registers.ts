/**
 * Memories in registers: the thread and the slot of each element, checked for all elements; and tiles that are opaque
 * objects of a target.
 */
import type * as Ast from '../../ast/nodes/nodes.ts'
import { div, type Expr, eq, int, mod, variable } from '../../ir/expressions/expr.ts'
import { LANE, type Memory, SLOT, type TileText } from '../../ir/instructions/instr.ts'
import { evaluate } from '../../ir/values/evaluate.ts'
import { report } from '../diagnostics.ts'

export type Base = Omit<Memory, 'size' | 'element' | 'address' | 'owner' | 'opaque'>

/** A replicated element: its linear index in the tile, and a thread that holds it. */
interface Held {
  readonly flat: number
  readonly lane: number
}

export function registers(
  map: Ast.ElementMap,
  element: readonly Expr[],
  base: Base,
  replicated: boolean,
): Memory | null {
  const { threads, shape, name } = base
  const total = shape.reduce((a, b) => a * b, 1)
  if (!replicated && total % threads !== 0)
    return report('check/memory-map', map.span, {
      message: `${threads} threads cannot hold equal parts of ${total} elements`,
      expected: `a tile whose elements are a multiple of ${threads}`,
      hint: 'write `replicated` if several threads hold the same element',
    })
  // For each element, the first slot and thread that hold it, as `slot * threads + lane`; -1 for elements not found
  // yet.
  const seen = new Int32Array(total).fill(-1)
  let found = 0
  const where = (at: number): string =>
    `${map.lane.name} ${at % threads}, ${map.slot.name} ${Math.floor(at / threads)}`
  const slots: Held[] = []
  // A replicated map may need as many slots as there are elements.
  const most = replicated ? total : total / threads
  let size = 0
  for (; size < most && !(replicated && found === total); size++)
    for (let lane = 0; lane < threads; lane++) {
      const values = new Map([
        [LANE, lane],
        [SLOT, size],
      ])
      const at = element.map((e) => evaluate(e, values))
      const here = size * threads + lane
      if (at.some((c, d) => c < 0 || c >= shape[d]!))
        return report('check/memory-range', map.span, {
          message: `${where(here)} of ${name} is (${at.join(', ')}), outside of the tile of ${shape.join(' × ')}`,
          expected: 'an element of the tile for every slot of every thread',
        })
      const flat = at.reduce((sum, c, d) => sum * shape[d]! + c, 0)
      const before = seen[flat]!
      const twice = replicated ? slots.some((h) => h.flat === flat && h.lane === lane) : before >= 0
      if (twice)
        return report('check/memory-overlap', map.span, {
          message: `${where(before)} and ${where(here)} of ${name} are both (${at.join(', ')})`,
          expected: replicated ? 'an element once in each thread' : 'every element of the tile exactly once',
        })
      if (before < 0) {
        seen[flat] = here
        found++
      }
      if (replicated) slots.push({ flat, lane })
    }
  if (!replicated) return { ...base, size, element }
  const owner = found === total ? ownerOf(slots, total, threads) : undefined
  if (owner) return { ...base, size, element, owner }
  return report('check/memory-replicated', map.span, {
    message:
      found === total
        ? `which threads of ${name} hold the same element follows no digit of their number`
        : `${name} holds ${found} of ${total} elements`,
    expected: `every element in threads that differ in \`${map.lane.name} / a % b\` alone, for some a and b`,
  })
}

/**
 * A condition `lane / a % b == 0` that holds for exactly one thread for each element; undefined if there is no such
 * condition.
 */
function ownerOf(slots: readonly Held[], total: number, threads: number): Expr | undefined {
  for (let a = 1; a <= threads; a++)
    for (let b = 1; a * b <= threads; b++) {
      if (threads % (a * b) !== 0) continue
      const first = slots.filter((h) => Math.floor(h.lane / a) % b === 0)
      if (first.length !== total || new Set(first.map((h) => h.flat)).size !== total) continue
      const digit = div(variable(LANE), int(a))
      return eq(a * b === threads ? digit : mod(digit, int(b)), int(0))
    }
  return undefined
}

/** A memory of opaque tiles, from the texts for targets, one of which must be a type. */
export function object(
  m: Ast.Memory,
  base: Base,
  texts: readonly (Ast.MemoryText & { readonly text: TileText })[],
): Memory | null {
  const of = (what: Ast.MemoryText['what']): readonly TileText[] =>
    texts.filter((t) => t.what === what).map((t) => t.text)
  const [types, fills] = [of('type'), of('fill')]
  const wrong = texts.find((t) => (t.what === 'type') !== (t.text.parts.length === 1))
  if (wrong || types.length === 0)
    return report('check/memory-object', wrong?.code.span ?? m.name.span, {
      message: wrong
        ? `${wrong.what === 'type' ? 'a type mentions no value' : 'the value that fills a tile does not mention the tile'}`
        : `${base.name} is filled and has no type`,
      expected: 'TARGET `type`, and `fill` TARGET `a tile of $value`',
    })
  return { ...base, size: 1, element: [], opaque: { types, fills } }
}
