/** Producer-consumer fusion: a loop nest is computed inside of a loop of its consumer (`compute_at`). */

import { writtenIn } from '../../../analysis/dependence/loop-writes.ts'
import { orList } from '../../../ast/diagnostics/suggest.ts'
import { expectValues, FLAG } from '../../../ast/diagnostics/value-kinds.ts'
import { boundIndex } from '../../../ir/instructions/hardware-axes.ts'
import { writesOf } from '../../../ir/statements/accesses.ts'
import { findLoop, type LoopLocation, loopsOf } from '../../../ir/statements/definitions.ts'
import type { For, Stmt } from '../../../ir/statements/loops.ts'
import { type Body, replaceStmt, stmt } from '../../../ir/statements/tree.ts'
import { checkOneNest } from '../../legality/checks.ts'
import type { LoopRef } from '../../names/kernel-names.ts'
import { type Gone, gone, primitive } from '../../primitive.ts'
import type { Context } from '../../state/context.ts'
import * as arg from '../../steps/arguments.ts'
import {
  checkBetween,
  checkProducts,
  checkUnseen,
  reductionAround,
  refuseStart,
} from './compute-at-checks.ts'
import { consumeAt, findConsumer } from './epilogue.ts'
import { inPrivate, type Place } from './private-region.ts'
import { restrict, type Windows, windowsOf } from './producer-region.ts'

/**
 * `compute_at produce at i`: the loop nest `produce` moves to the start of the body of `i`, a loop of a later loop
 * nest, and computes only the elements that the iteration reads. Loops of the producer that index the element run over
 * the interval of indices that is read inside of `i`; a loop with one value disappears. A loop nest after that of `i`
 * moves to the end of the body instead, and consumes the results of the iteration (`epilogue.ts`).
 * The step is illegal if the produced buffers are outputs or are read elsewhere, or if a statement in between writes an
 * input of the producer. Elements that several iterations read are computed again with `recompute` only, in private
 * memory of each iteration. `in shared` uses such memory in any case.
 */
export const computeAt = primitive({
  word: 'compute_at',
  call: "computeAt('producer', 'i')",
  takes: [arg.nest('nest'), 'at', arg.loop('at'), arg.flag('recompute'), arg.optional('in', arg.memory)],
  given: (
    nest: string,
    at: LoopRef,
    how?: { readonly recompute?: boolean; readonly place?: arg.MemoryScope },
  ) => ({ nest, at, ...options(how) }),
  apply(cx, step) {
    const at = cx.loop(step.at)
    checkOneNest(cx, at.loop, 'compute_at')
    const later = findConsumer(step.nest, at)
    if (later) {
      checkNotAsked(cx, step, at.loop, later.consumer)
      return consumeAt(cx, at, later)
    }
    const { list, producer, consumer } = findProducer(cx, step.nest, at)
    const produced = checkProducts(cx, producer, at)
    checkBetween(cx, list, producer, consumer, at.loop)
    const isRestricted = step.recompute || step.scope !== undefined
    const reducing = reductionAround(producer, consumer, at)
    if (reducing && !isRestricted) refuseStart(cx, producer, reducing, at)
    const windows = windowsOf(cx, producer, at, produced)
    if (windows.size > 0 || isRestricted) checkUnseen(cx, producer, at.loop, produced)
    const inside = [...restrict(cx, producer, at, windows), ...at.loop.body]
    const within = (body: Body, without: Body = cx.kernel.body): Body => {
      const shrunk = replaceStmt(without, producer, () => [])
      const loop = findLoop(shrunk, at.loop.var)!.loop
      return replaceStmt(shrunk, loop, (l) => stmt<For>({ ...(l as For), body }))
    }
    const gone = goneInto(producer, windows, at.loop)
    const body = within(inside)
    const clash = clashOf(cx, body, at, produced)
    if (clash) checkAgain(cx, clash, at, { producer, windows, recompute: step.recompute ?? false })
    // A buffer that is allocated inside of a reduction loop is initialised there, and belongs to one thread.
    const threads = [...at.path, at.loop].some((l) => l.reduce && boundIndex(l, 'thread'))
    const isLocal = reducing !== undefined || threads || step.scope !== undefined
    const own =
      clash || isRestricted
        ? inPrivate(cx, at, inside, {
            nest: producer.nest,
            produced,
            windows,
            place: step,
            otherwise: isLocal ? 'refuse' : clash ? 'global' : 'keep',
          })
        : undefined
    if (!own) return { body, gone }
    return {
      body: within(
        own.inside,
        cx.kernel.body.filter((s) => s.kind !== 'fill' || !produced.has(s.buffer)),
      ),
      buffers: own.buffers,
      unused: [...produced],
      gone,
    }
  },
})

function options(how: { readonly recompute?: boolean; readonly place?: arg.MemoryScope } | undefined) {
  const { recompute, place } = arg.options('computeAt', how, ['recompute', 'place'])
  expectValues({ recompute }, { recompute: FLAG })
  return { ...(recompute && { recompute }), ...(place !== undefined && { place }) }
}

const goneInto = (producer: For, windows: Windows, loop: For): readonly Gone[] =>
  loopsOf([producer])
    .filter((l) => windows.get(l.var)?.width === null)
    .map((l) => gone(l, 'merged', [`${loop.nest}.${loop.name}`]))

/** The producer and the statement around the consumer's loop, which are in one list, in this order. */
function findProducer(
  cx: Context,
  nest: string,
  at: LoopLocation,
): { list: Body; producer: For; consumer: Stmt } {
  for (const { list, index, stmt: consumer } of at.places) {
    const producer = list.slice(0, index).find((s): s is For => s.kind === 'for' && s.nest === nest)
    if (producer) return { list, producer, consumer }
  }
  const beside = new Set(
    at.places.flatMap(({ list, stmt: own }) =>
      list.flatMap((s) => (s.kind === 'for' && s !== own ? [s.nest] : [])),
    ),
  )
  const nests = [...new Set(loopsOf(cx.kernel.body).map((l) => l.nest))]
  const known = nests.includes(nest)
  return cx.refuse(known ? 'schedule/not-before' : 'schedule/unknown-nest', [at.loop], {
    message: known
      ? `${nest} is not in the same body as the loop nest around ${at.loop.name}`
      : `there is no loop nest ${nest}`,
    expected:
      known && beside.size === 0
        ? `an iteration next to that of ${at.loop.name}; there is none`
        : orList(known ? [...beside] : nests),
    ...(known ? {} : { lookup: { name: nest, candidates: nests } }),
  })
}

function checkNotAsked(
  cx: Context,
  step: Place & { readonly recompute?: boolean | undefined },
  loop: For,
  nest: For,
): void {
  if (!step.recompute && !step.scope) return
  cx.refuse('schedule/not-a-producer', [loop, nest], {
    message: `${nest.nest} comes after ${loop.name} and consumes the output`,
    hint: `compute_at ${nest.nest} at ${loop.name}`,
  })
}

interface Clash {
  readonly loop: For
  readonly buffer: string
}

/** Returns the first loop whose iterations may compute common elements. */
function clashOf(
  cx: Context,
  body: Body,
  at: LoopLocation,
  produced: ReadonlySet<string>,
): Clash | undefined {
  const kernel = { ...cx.kernel, body }
  for (const l of [...at.path, at.loop]) {
    const shared = writtenIn(kernel, findLoop(body, l.var)!.loop).find(
      (w) => produced.has(w.buffer) && !w.disjoint,
    )
    if (shared) return { loop: l, buffer: shared.buffer }
  }
  return undefined
}

/** Iterations compute common elements again only if the step permits it and the consumer does not write them. */
function checkAgain(
  cx: Context,
  { loop, buffer }: Clash,
  at: LoopLocation,
  { producer, windows, recompute }: { producer: For; windows: Windows; recompute: boolean },
): void {
  const { name, body } = at.loop
  if (writesOf(body).has(buffer))
    cx.refuse('schedule/order-matters', [loop, at.loop], {
      message: `iterations of ${loop.name} also write ${buffer}, which other iterations read`,
      hint: 'choose a loop further out',
    })
  if (recompute) return
  const arranged = loopsOf([producer]).filter((l) => !l.reduce && !windows.has(l.var) && isArranged(cx, l))
  const names = arranged.map((l) => l.name).join(', ')
  cx.refuse('schedule/computed-again', [loop, at.loop, ...arranged], {
    message:
      arranged.length > 0
        ? `every iteration of ${loop.name} would compute the elements of ${buffer} that ${names} cover`
        : `each iteration of ${loop.name} would compute its elements of ${buffer}, and several may read the same elements`,
    expected:
      arranged.length > 0
        ? `unscheduled loops of ${producer.nest} (before split, fuse and bind)`
        : 'iterations that read distinct elements, or `recompute`',
    hint:
      arranged.length > 0
        ? `move compute_at before the steps on ${names}`
        : `compute_at ${producer.nest} at ${name} recompute: each iteration computes elements in private memory`,
  })
}

/** A loop that steps have bound or created from other loops: its variable is not an index then. */
const isArranged = (cx: Context, l: For): boolean =>
  l.mode.kind !== 'serial' || cx.consumed.some((c) => c.nest === l.nest && c.into.includes(l.name))
