/** Loop fusion of nested loops (collapse, coalescing): one loop over the product of their extents (`fuse`). */

import { type Expr, mul, variable } from '../../../ir/expressions/expr.ts'
import { mentions } from '../../../ir/expressions/expr-tree.ts'
import { substituteStmts } from '../../../ir/statements/bindings.ts'
import { replaceLoop } from '../../../ir/statements/definitions.ts'
import type { For } from '../../../ir/statements/loops.ts'
import { initLoops, initsOf } from '../../../ir/statements/reductions.ts'
import { unflatten } from '../../../ir/statements/statement-builders.ts'
import { stmt } from '../../../ir/statements/tree.ts'
import { checkPerfectChain, checkRectangular, checkSerial } from '../../legality/checks.ts'
import { mixedReduction } from '../../legality/loop-dependence.ts'
import type { LoopRef } from '../../names/kernel-names.ts'
import { gone, type Outcome, primitive } from '../../primitive.ts'
import type { Context } from '../../state/context.ts'
import * as arg from '../../steps/arguments.ts'

const EARLIER =
  'fuse before the first step on loops (an atomic is one): the fused loop then iterates over stored elements'

/**
 * `fuse (i, f) -> g`: perfectly nested loops become one loop over the product of their extents, in the same order. The
 * step is illegal if an inner extent depends on an outer loop (for ragged rows, fuse the iterators on coordinates), or
 * if only some of the loops are reductions. A single loop is renamed.
 */
export const fuse = primitive({
  word: 'fuse',
  call: "fuse(['i', 'j'], 'ij')",
  takes: [arg.loops('loops'), arg.optional('->', arg.newLoop('into'))],
  given: (loops: readonly LoopRef[], into?: string) => ({ loops, into }),
  apply(cx, step) {
    const found = step.loops.map((r) => cx.loop(r))
    if (found.length === 1 && step.into !== undefined) return renamed(cx, found[0]!.loop, step.into)
    if (found.length < 2)
      cx.refuse(
        'schedule/too-few-loops',
        found.map((f) => f.loop),
        {
          message: 'fuse needs at least two loops',
          hint: 'name the loops from the outermost: fuse (i, j) -> k',
        },
      )
    const chain = checkPerfectChain(cx, found, 'fuse')
    const loops = found.map((f) => f.loop)
    if (chain.length !== loops.length || chain.some((l, k) => l !== loops[k]))
      cx.refuse('schedule/not-adjacent', chain, {
        message: 'fuse takes directly nested loops, from the outermost',
        expected: `fuse (${chain.map((l) => l.name).join(', ')})`,
      })
    for (const [k, l] of chain.entries()) {
      checkSerial(cx, l, 'fuse')
      checkRectangular(cx, chain.slice(0, k), l, 'fuse', EARLIER)
    }
    const mixed = chain.find((l) => l.reduce !== chain[0]!.reduce)
    if (mixed) cx.refuse('schedule/mixed-reduction', chain, mixedReduction(chain))
    const name = step.into ?? chain.map((l) => l.name).join('_')
    cx.claimLoops(chain[0]!.nest, [name], chain)
    const fused = cx.fresh(name)
    const map = digitsOf(chain, fused)
    const loop = fuseLoops(chain, name, fused, map)
    checkGuardsDependOn(cx, chain, loop)
    return {
      body: replaceLoop(cx.kernel.body, chain[0]!.var, () => loop),
      gone: chain.map((l) => gone(l, 'fused', [name])),
    }
  },
})

/** Renames the only loop of a `fuse`: a role of a schedule may have a single loop. */
function renamed(cx: Context, loop: For, into: string): Outcome {
  cx.claimLoops(loop.nest, [into], [loop])
  return { body: replaceLoop(cx.kernel.body, loop.var, () => stmt({ ...loop, name: into })) }
}

/**
 * Throws `schedule/nothing-to-fuse` if a guard would not depend on the fused loop, because a loop of one iteration
 * vanishes from expressions. An initialisation repeats the loops of its elements, without guards that depend on other
 * loops.
 */
function checkGuardsDependOn(cx: Context, chain: readonly For[], fused: For): void {
  const repeated = (l: For): number =>
    initsOf([l]).flatMap((r) => initLoops(r.reduce, r.path).flatMap((x) => x.guards)).length
  const guards = chain.flatMap((l) => l.guards.filter((g) => chain.some((x) => mentions(g, x.var))))
  const lost = fused.guards.filter((g) => mentions(g, fused.var)).length < guards.length
  if (lost || repeated(fused) > repeated(chain[0]!))
    cx.refuse('schedule/nothing-to-fuse', chain, {
      message: 'a guard inside would not depend on the fused loop',
      hint: 'omit loops of a single iteration',
    })
}

/** The value of each original loop variable, over that of the fused loop. */
type Digits = ReadonlyMap<string, Expr>

function digitsOf(chain: readonly For[], fused: string): Digits {
  const digits = unflatten(
    variable(fused),
    chain.map((l) => l.extent),
  )
  return new Map(chain.map((l, k) => [l.var, digits[k]!]))
}

function fuseLoops(chain: readonly For[], name: string, fused: string, map: Digits): For {
  const innermost = chain.at(-1)!
  const inside = substituteStmts([{ ...innermost, guards: chain.flatMap((l) => l.guards) }], map)[0] as For
  return stmt<For>({
    ...inside,
    var: fused,
    name,
    nest: chain[0]!.nest,
    extent: chain.map((l) => l.extent).reduce(mul),
  })
}
