/** Inlining of elementwise producers (`compute_inline`): loads of a buffer are replaced by the expression of the element. */

import { linear } from '../../../analysis/integers/linear.ts'
import { loopDigits, mixedRadix } from '../../../analysis/integers/mixed-radix.ts'
import { expectValues, FLAG } from '../../../ast/diagnostics/value-kinds.ts'
import { cast, div, type Expr, mod } from '../../../ir/expressions/expr.ts'
import { buffersRead, substitute } from '../../../ir/expressions/expr-tree.ts'
import { sameExpr } from '../../../ir/expressions/structural-equality.ts'
import { accessesOf, type BufferAccess, writesOf } from '../../../ir/statements/accesses.ts'
import type { For, Stmt } from '../../../ir/statements/loops.ts'
import { isSingleIteration } from '../../../ir/statements/reductions.ts'
import { store as toStore } from '../../../ir/statements/statement-builders.ts'
import type { Reduce, Store } from '../../../ir/statements/store-and-reduce.ts'
import { replaceLoads } from '../../legality/buffer-uses.ts'
import { gone, primitive } from '../../primitive.ts'
import type { Context } from '../../state/context.ts'
import * as arg from '../../steps/arguments.ts'
import { type TopNest, topNest } from '../nests/top-nests.ts'
import { checkOutput, checkUnseen, perfectChain } from './compute-at-checks.ts'
import { type IndexMatch, matchIndices } from './epilogue-index-matching.ts'

/**
 * `compute_inline produce`: each load of the buffer that `produce` writes becomes the expression of the element, and
 * the loop nest and its buffer disappear. The loop nest must store one element in each iteration, and its consumers must
 * be later loop nests. Without `recompute`, each element is read at most once.
 */
export const computeInline = primitive({
  word: 'compute_inline',
  call: "computeInline('producer')",
  takes: [arg.nest('nest'), arg.flag('recompute')],
  given: (nest: string, how?: { readonly recompute?: boolean }) => ({ nest, ...recomputing(how) }),
  apply(cx, step) {
    const producer = topNest(cx, step.nest)
    const { chain, store, stmt } = elementwise(cx, producer)
    const { dtype } = checkOutput(cx, producer.top, store.buffer)
    checkUnseen(cx, producer.top, producer.top, new Set([store.buffer]))
    const reads = readsAfter(cx, producer, store, stmt)
    checkWhole(cx, producer, store)
    const values = reads.map((r) => valuesAt(cx, chain, store, r))
    if (!step.recompute) checkOnce(cx, producer, store, reads, values)
    const inlined = replaceLoads(
      cx.kernel.body.filter((s) => s !== producer.top),
      store.buffer,
      (index, path) => {
        const value = substitute(store.value, valuesAt(cx, chain, store, { index, path }))
        return value.dtype === dtype ? value : cast(value, dtype)
      },
    )
    return {
      body: inlined,
      unused: [store.buffer],
      gone: chain.map((l) => gone(l, 'merged', consumersOf(l, reads, values))),
    }
  },
})

function recomputing(how: { readonly recompute?: boolean } | undefined) {
  const { recompute } = arg.options('computeInline', how, ['recompute'])
  expectValues({ recompute }, { recompute: FLAG })
  return recompute ? { recompute } : {}
}

interface Elementwise {
  readonly chain: readonly For[]
  readonly store: Store
  /** The store, or the sum of a single term that it stands for. */
  readonly stmt: Stmt
}

/** The loops and the only statement of the loop nest. Throws `schedule/not-elementwise`. */
function elementwise(cx: Context, { name, top }: TopNest): Elementwise {
  const chain = perfectChain(top)
  const [s, another] = chain.at(-1)?.body ?? []
  const store = s?.kind === 'reduce' ? singleTerm(s) : s
  const isPlain = !another && chain.every((l) => l.guards.length === 0)
  if (s && isPlain && store?.kind === 'store' && !buffersRead(store.value).has(store.buffer))
    return { chain, store, stmt: s }
  return cx.refuse('schedule/not-elementwise', [top], {
    message: `${name} is more than one assignment of an element in serial loops without conditions`,
    expected: 'iterate … as S… { T[…] = … }',
    hint: `compute_at ${name} at a loop of its consumer`,
  })
}

/** A sum that is initialised at each of its terms, as derived gradients have, is a store. */
const singleTerm = ({ reducer, targets: [target, second], values, init }: Reduce): Store | undefined =>
  init && reducer.name === '+' && target && !second
    ? toStore(target.buffer, target.index, values[0]!)
    : undefined

/** The loads of the buffer, all after the producer, with unchanged inputs. Throws `schedule/used-elsewhere` and others. */
function readsAfter(
  cx: Context,
  { name, top, at }: TopNest,
  store: Store,
  stmt: Stmt,
): readonly BufferAccess[] {
  const { body } = cx.kernel
  const uses = accessesOf(body, new Set([store.buffer])).filter(
    (a) => a.stmt !== stmt && a.stmt.kind !== 'fill',
  )
  const other = uses.find((a) => a.mode === 'write' || a.whole)
  if (other)
    cx.refuse('schedule/used-elsewhere', [top, ...other.path.slice(0, 1)], {
      message: `${store.buffer} is also ${other.mode === 'write' ? 'written' : 'searched'} outside of ${name}`,
      hint: `leave ${name} a separate loop nest`,
    })
  if (uses.length === 0)
    cx.refuse('schedule/not-read', [top], {
      message: `nothing reads ${store.buffer}`,
      hint: `leave ${name} a separate loop nest`,
    })
  const isIn = (k: number): boolean => {
    const inside = accessesOf([body[k]!], new Set([store.buffer]))
    return k !== at && inside.some((a) => a.mode === 'read')
  }
  const readers = body.flatMap((_, k) => (isIn(k) ? [k] : []))
  const inputs = new Set(accessesOf([top]).flatMap((a) => (a.mode === 'read' ? [a.buffer] : [])))
  const between = body.slice(at + 1, readers.at(-1)! + 1)
  const written = [...writesOf(between)].find((b) => inputs.has(b))
  if (readers[0]! < at || written !== undefined)
    cx.refuse('schedule/order-matters', [top], {
      message:
        written === undefined
          ? `${store.buffer} is read before ${name} runs`
          : `${name} uses ${written}, which is written before ${store.buffer} is read`,
      hint: `leave ${name} a separate loop nest`,
    })
  return uses
}

/** Throws `schedule/not-every-element` if the buffer has elements that the producer does not write. */
function checkWhole(cx: Context, { name, top }: TopNest, { buffer }: Store): void {
  if (!cx.kernel.body.some((s) => s.kind === 'fill' && s.buffer === buffer)) return
  cx.refuse('schedule/not-every-element', [top], {
    message: `${name} may leave elements of ${buffer} at their fill value`,
    hint: `leave ${name} a separate loop nest`,
  })
}

/** The values of the producer's loops for the element of a load. Throws `schedule/other-elements`. */
function valuesAt(
  cx: Context,
  chain: readonly For[],
  store: Store,
  { index, path }: Pick<BufferAccess, 'index' | 'path'>,
): ReadonlyMap<string, Expr> {
  const values = new Map<string, Expr>()
  const isMatched = store.index.every((e, d) => {
    const found = indexValues(cx, chain, e, index[d]!, path)
    for (const [of, value] of found ?? []) values.set(of.var, value)
    return found !== undefined
  })
  const open = chain.find((l) => !values.has(l.var))
  if (isMatched && !open) return values
  return cx.refuse('schedule/other-elements', [...chain.slice(0, 1), ...path.slice(0, 1)], {
    message: `the element of ${store.buffer} that ${path[0]?.nest ?? 'a statement'} reads does not determine ${(open ?? chain[0])?.name ?? 'a loop'}`,
    expected: `an index of the form that ${chain[0]?.nest ?? 'the producer'} writes`,
  })
}

/**
 * The values of the producer's loops in an index, each below the extent of its loop. The digits of a number are loops of
 * the consumer with the same extents, or otherwise quotients and remainders.
 */
function indexValues(
  cx: Context,
  chain: readonly For[],
  written: Expr,
  read: Expr,
  path: readonly For[],
): readonly (readonly [For, Expr])[] | undefined {
  const matches = matchIndices(cx, chain, written, read, path)
  const isBelow = ({ of, value, same }: IndexMatch): boolean => {
    const loop = value.kind === 'var' ? path.find((l) => l.var === value.name) : undefined
    return same === true || (loop !== undefined && sameExpr(loop.extent, of.extent))
  }
  if (matches && (written.kind !== 'binary' || matches.every(isBelow)))
    return matches.map(({ of, value }) => [of, value] as const)
  const sum = linear(written)
  const digits = loopDigits(sum, (name) => chain.find((l) => l.var === name))
  const number = digits && mixedRadix(digits)
  if (!number?.dense || sum.constant !== 0) return undefined
  const top = number.digits.length - 1
  return number.digits.map(({ of, stride }, k) => {
    const quotient = div(read, stride)
    return [of, k === top ? quotient : mod(quotient, of.extent)] as const
  })
}

/** Throws `schedule/computed-again` if an element may be read more than once. */
function checkOnce(
  cx: Context,
  { name, top }: TopNest,
  { buffer }: Store,
  reads: readonly BufferAccess[],
  values: readonly ReadonlyMap<string, Expr>[],
): void {
  const named = new Set([...values[0]!.values()].flatMap((e) => (e.kind === 'var' ? [e.name] : [])))
  const [only, another] = reads
  const again = only!.path.find((l) => !named.has(l.var) && !isSingleIteration(l))
  if (!another && !again) return
  cx.refuse('schedule/computed-again', [top, ...(again ? [again] : [])], {
    message: again
      ? `every iteration of ${again.name} would compute the elements of ${buffer} again`
      : `${buffer} is read ${reads.length} times, and each would compute its elements`,
    expected: 'one load of each element, or `recompute`',
    hint: `compute_inline ${name} recompute`,
  })
}

/** The consumers' loops that run over the values of a loop; without one, their outermost loops. */
function consumersOf(
  loop: For,
  reads: readonly BufferAccess[],
  values: readonly ReadonlyMap<string, Expr>[],
): readonly string[] {
  const names = reads.flatMap(({ path }, k) => {
    const value = values[k]!.get(loop.var)
    const over = path.find((l) => value?.kind === 'var' && l.var === value.name) ?? path[0]
    return over ? [`${over.nest}.${over.name}`] : []
  })
  return [...new Set(names)]
}
