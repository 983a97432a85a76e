/**
 * Iteration over set bits, for nests of one thread. Invariant reached: a serial loop that tests one bit of a word per iteration visits
 * only the set bits, from the lowest on, and clears each in a copy of the word. This replaces one unpredictable branch per bit.
 */

import { type Names, namesOf } from '../../ir/expressions/bound-names.ts'
import { bool, call, type Expr, int, isZero, load, sub, variable } from '../../ir/expressions/expr.ts'
import { mentions, readsSome, substitute } from '../../ir/expressions/expr-tree.ts'
import { sameExpr } from '../../ir/expressions/structural-equality.ts'
import { writesOf } from '../../ir/statements/accesses.ts'
import { substituteStmts } from '../../ir/statements/bindings.ts'
import type { For, Kernel2, Stmt } from '../../ir/statements/loops.ts'
import {
  alloc,
  forLoop,
  local,
  positionRegister,
  store,
  when,
  whenAll,
} from '../../ir/statements/statement-builders.ts'
import { rewriteStmts, withBody } from '../../ir/statements/tree.ts'
import { isShared } from '../memory/cooperative-copies.ts'
import { indexesArrays } from '../specialise/specialise.ts'

const BITS = 32

/** Rewrites such loops if `promote` is set (`LowerOptions`), that is, for targets with one thread per nest. */
export function iterateSetBits(
  kernel: Kernel2,
  { promote }: { readonly promote?: boolean | undefined } = {},
): Kernel2 {
  if (!promote) return kernel
  const names = namesOf(kernel)
  const body = rewriteStmts(kernel.body, {
    stmt: (s) => {
      if (s.kind !== 'for' || s.mode.kind !== 'serial' || s.cooperative) return undefined
      const word = wordOf(s)
      return word && !readsSome(word, writesOf(s.body)) && !isShared(s) && !indexesArrays(s, kernel)
        ? overSetBits(s, word, names)
        : undefined
    },
  })
  return withBody(kernel, body)
}

/** Returns the word whose bit the first guard of the loop tests, masked to the loop's extent; undefined for other loops. */
function wordOf({ var: name, extent, guards: [g] }: For): Expr | undefined {
  if (extent.kind !== 'const' || extent.value > BITS) return undefined
  if (g?.kind !== 'binary' || g.op !== 'ne' || !isZero(g.b)) return undefined
  if (g.a.kind !== 'call' || g.a.fn !== 'bit_and') return undefined
  const [word, bit] = g.a.args as [Expr, Expr]
  if (!sameExpr(bit, call('shift_left', [int(1), variable(name)])) || mentions(word, name)) return undefined
  return extent.value === BITS ? word : call('bit_and', [word, int(2 ** extent.value - 1)])
}

function overSetBits(loop: For, word: Expr, names: Names): Stmt {
  const left = local(names.fresh(`${loop.name}_left`), 'i32')
  const at = positionRegister(names.fresh(`${loop.name}_at`), int(BITS - 1))
  const [rest, bit] = [left, at].map((b) => load(b.name, [int(0)])) as [Expr, Expr]
  const set = (b: typeof left, value: Expr): Stmt => store(b.name, [int(0)], value)
  const below = sub(rest, int(1))
  const numbered = new Map([[loop.var, bit]])
  const guards = loop.guards.slice(1).map((g) => substitute(g, numbered))
  const { nest, reduce, span } = loop
  const round = forLoop(
    names.fresh(`${loop.name}_set`),
    call('popcount', [rest]),
    [
      // The number of zeros below the lowest set bit.
      set(at, call('popcount', [call('bit_and', [call('bit_xor', [rest, int(-1)]), below])])),
      set(left, call('bit_and', [rest, below])),
      ...whenAll(guards, substituteStmts(loop.body, numbered)),
    ],
    { nest, reduce, span },
  )
  return when(bool(true), [alloc(left), alloc(at), set(left, word), round])
}
