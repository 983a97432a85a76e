/** Caching of reads: elements that an iteration reads are staged in shared memory or registers (`cache_read`). */

import { eliminateRedundantGuards } from '../../../analysis/dependence/redundant-guards.ts'
import { Facts } from '../../../analysis/integers/facts.ts'
import { notInRuns } from '../../../analysis/integers/mixed-radix.ts'
import { type Expr, load } from '../../../ir/expressions/expr.ts'
import { buffersRead, substitute } from '../../../ir/expressions/expr-tree.ts'
import { allocatedNames } from '../../../ir/statements/bindings.ts'
import { replaceLoop } from '../../../ir/statements/definitions.ts'
import type { Buffer, For } from '../../../ir/statements/loops.ts'
import { initsOf } from '../../../ir/statements/reductions.ts'
import { alloc } from '../../../ir/statements/statement-builders.ts'
import { stmt } from '../../../ir/statements/tree.ts'
import { replaceLoads, usesOf } from '../../legality/buffer-uses.ts'
import { checkOneNest } from '../../legality/checks.ts'
import { checkStable, type Footprint, footprint } from '../../legality/footprint.ts'
import type { LoopRef } from '../../names/kernel-names.ts'
import { primitive } from '../../primitive.ts'
import type { Context } from '../../state/context.ts'
import * as arg from '../../steps/arguments.ts'
import { ownBox, tileOf } from './block-tile.ts'
import { type Bounding, boundingOf, readConditions } from './copy-conditions.ts'
import { boxed, type CopyLayout, LAYOUT, localCopy, own } from './read-copies.ts'

const takes = arg.takes(
  arg.buffer('buffer'),
  'at',
  arg.loop('at'),
  'in',
  arg.memory,
  arg.flag('bounding'),
  arg.flag('transposed'),
  arg.optional('stride', arg.integer('stride')),
  arg.optional('by', arg.integer('by')),
  arg.optional('padded', arg.integer('padded')),
  arg.optional('->', arg.newBuffer('into')),
)

/**
 * `cache_read B at jo in shared -> Bs`: each iteration of `jo` copies the elements of `B` that it reads, before the
 * first use, and reads the copy. The copy has a dimension for each inner loop that the index depends on (constant
 * extents), so gathers (`B[j_indices[…], f]`) are copied like other reads. A shared copy also has a dimension for each
 * enclosing thread-bound loop that the index depends on. With `bounding`, the copy has all elements that an index array
 * could select (`B[g * 4 + jo_indices[…], f]`, `jo_indices` below 4: four rows for each `g`).
 * The step is illegal if reads have different indices, if a read may not happen, or if the loop also writes the buffer.
 */
export const cacheRead = primitive({
  word: 'cache_read',
  call: "cacheRead('B', 'jo', 'shared', 'Bs')",
  takes,
  given: (
    buffer: string,
    at: LoopRef,
    place: arg.MemoryScope,
    into?: string,
    how?: CopyLayout & { readonly bounding?: boolean | undefined },
  ) => ({
    buffer,
    at,
    place,
    ...arg.options('cacheRead', how, ['bounding', 'transposed', 'stride', 'by', 'padded']),
    into,
  }),
  apply(cx, step) {
    const at = cx.loop(step.at)
    const { loop } = at
    checkOneNest(cx, loop, 'cache_read')
    const buffer = cx.buffer(step.buffer)
    if (buffer.scope === 'register')
      cx.refuse('schedule/in-registers', [loop], {
        message: `${buffer.name} is in registers already`,
        expected: 'a buffer in global or shared memory',
      })
    const written = usesOf(loop.body, buffer.name)
    const bounded = step.bounding ? boundingOf(cx, at, buffer) : unbounded
    const uses = written.map((u) => bounded(u).access)
    if (uses.length === 0 || allocatedNames(loop.body).has(buffer.name))
      cx.refuse('schedule/not-read', [loop], {
        message: `${loop.name} does not read ${buffer.name} from outside`,
        hint: 'cache at a loop around the reads',
      })
    if (uses.some((u) => u.mode === 'write'))
      cx.refuse('schedule/written-too', [loop], {
        message: `${loop.name} also writes ${buffer.name}, so a copy would become stale`,
        hint: `cache_write ${buffer.name}, or cache further inside`,
      })
    // A padded copy in registers evaluates the conditions of the read for each element.
    const keepsConditions = step.padded !== undefined && step.scope === 'register'
    if (uses.some((u) => u.conditional && !(keepsConditions && u.under)))
      cx.refuse('schedule/conditional-read', [loop], {
        message: `whether ${loop.name} reads ${buffer.name} depends on a condition, and a copy would always read ${buffer.name}`,
        hint: `cache at a loop inside of the condition, or do not cache ${buffer.name}`,
      })
    checkStarts(cx, loop, buffer)
    if (step.bounding && written.every((u) => bounded(u).held.size === 0))
      cx.refuse('schedule/not-bounded', [loop], {
        message: `${loop.name} does not read ${buffer.name} through an index array with a constant bound`,
        expected: 'a sum with the coordinates of an axis whose extent is a number: g * 4 + jo_indices[…]',
        hint: 'leave out bounding',
      })
    const plain = footprint(cx, at, buffer, uses, step)
    const recursive = plain.loops.find((l) => usesOf([{ ...l, body: [] }], buffer.name).length > 0)
    if (recursive)
      cx.refuse('schedule/decides-itself', [recursive], {
        message: `the extent of ${recursive.name} depends on ${buffer.name}`,
        hint: `cache at ${recursive.name}, or further inside`,
      })
    const copied = keepsConditions ? uses : uses.map((u) => ({ ...u, under: null }))
    const print: Footprint = { ...plain, conditions: readConditions(cx, at, copied, step.scope) }
    // The copy is just before the first use, after other copies that its index reads.
    const first = Math.min(...uses.map((u) => u.child))
    checkStable(cx, loop, print, first)
    const name = step.into ? cx.claim(step.into) : cx.fresh(`${buffer.name}_${step.scope}`)
    const box =
      step.scope === 'shared'
        ? tileOf(cx, at, print, buffer, step)
        : LAYOUT.every((x) => step[x] === undefined) && ownBox(cx, at, print, buffer, step.memory)
    const { shape, copy, element, padding } = box
      ? boxed(cx, loop, step, box, buffer, name)
      : own(cx, at, step, print, buffer, name)
    const { index, dims } = box ? box : { index: plain.index, dims: plain.loops }
    const ascending = ascendingIn(cx, buffer, step, index, dims)
    const from = { ...buffer, packed: undefined, ascending }
    const local = localCopy(cx, loop, from, step, { name, dtype: buffer.dtype, shape, padding })
    const body = replaceLoads(loop.body, buffer.name, (index, path) => {
      const { access, held } = bounded({ index, path })
      return load(
        name,
        element(access).map((e) => substitute(e, held)),
        buffer.dtype,
      )
    })
    const next = replaceLoop(cx.kernel.body, loop.var, (l) =>
      stmt({
        ...l,
        body: [...body.slice(0, first), alloc(local), copy, ...body.slice(first)],
      }),
    )
    return { body: step.padded === undefined ? next : eliminateRedundantGuards(next) }
  },
})

/** The length of ascending runs in the copy's last dimension; undefined if the copy does not keep the runs. */
function ascendingIn(
  cx: Context,
  { ascending: run }: Buffer,
  { padded, transposed }: CopyLayout,
  index: readonly Expr[],
  dims: readonly { readonly var: string; readonly extent: Expr | number }[],
): number | undefined {
  const last = dims.at(-1)
  if (run === undefined || padded !== undefined || transposed || !last) return undefined
  const facts = new Facts({ sizes: cx.kernel.facts })
  const whole = typeof last.extent === 'number' ? last.extent % run === 0 : facts.isMultiple(last.extent, run)
  return whole && notInRuns(index, last, run, facts) === undefined ? run : undefined
}

const unbounded = <A>(access: A): Bounding<A> => ({ access, held: new Map() })

/** Elements are initialised before the outermost reduction loop, where no copy exists. */
function checkStarts(cx: Context, loop: For, buffer: Buffer): void {
  for (const { reduce, path } of initsOf(cx.kernel.body)) {
    const outermost = path.slice(0, path.indexOf(loop) + 1).find((l) => l.reduce)
    const target = reduce.targets.find((t) => t.index.some((e) => buffersRead(e).has(buffer.name)))
    if (outermost && target)
      cx.refuse('schedule/start-outside', [outermost], {
        message: `${buffer.name} addresses elements of ${target.buffer}, which are initialised before ${outermost.name}, where no copy exists`,
        hint: `cache at a loop around ${outermost.name}`,
      })
  }
}
