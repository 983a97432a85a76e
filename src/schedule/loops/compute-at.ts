/** Producer-consumer fusion: a nest is computed inside of a loop of the nest that reads it (`compute_at`). */

import { loopMap } from '../../analysis/integers/linear.ts'
import { writtenIn } from '../../analysis/loop-writes.ts'
import { type Space, segmentOf } from '../../analysis/subscript-injectivity.ts'
import { accessesOf, type BufferAccess, offsetsIn } from '../../ir/accesses.ts'
import { boundVarsOf, substituteStmts } from '../../ir/bindings.ts'
import { allocations, type Found, loopsOf } from '../../ir/definitions.ts'
import { type Expr, lt } from '../../ir/expr.ts'
import { freeVars, mentionsAny } from '../../ir/expr-tree.ts'
import type { For, Stmt } from '../../ir/loops.ts'
import { printExpr } from '../../ir/print-stage2.ts'
import { initsOf } from '../../ir/reductions.ts'
import { when } from '../../ir/statement-builders.ts'
import { keyOf, sameExpr } from '../../ir/structural-equality.ts'
import { type Body, bodiesOf, replaceStmt, someStmt, stmt, walkStmts, withBodies } from '../../ir/tree.ts'
import * as arg from '../arguments.ts'
import { checkOneNest, overParams } from '../checks.ts'
import type { Context } from '../context.ts'
import type { LoopRef } from '../loop-ref.ts'
import { gone, primitive } from '../primitive.ts'
import { twoNests } from '../samples.ts'
import { consumeAt, findConsumer } from './epilogue.ts'

/**
 * `compute_at produce at i`: the nest `produce` moves to the start of the body of `i`, a loop of a later nest,
 * and there computes only what the iteration reads. Loops of the producer whose variable names the element in
 * the same way as an index that is fixed inside of `i` disappear. A nest that stands after that of `i` moves to the end
 * of the body instead, and consumes what the iteration has produced (`epilogue.ts`).
 *
 * Refused where the buffers produced are read elsewhere or leave the kernel, where different iterations would
 * compute the same elements, and where something in between writes what the producer reads.
 */
export const computeAt = primitive({
  word: 'compute_at',
  takes: [arg.nest('nest'), 'at', arg.loop('at')],
  given: (nest: string, at: LoopRef) => ({ nest, at }),
  apply(cx, step) {
    const at = cx.loop(step.at)
    checkOneNest(cx, at.loop, 'compute_at')
    const later = findConsumer(cx, step.nest, at)
    if (later) return consumeAt(cx, at, later)
    const { list, producer, consumer } = findProducer(cx, step.nest, at)
    const produced = checkProducts(cx, producer, at.loop)
    checkBetween(cx, list, producer, consumer, at.loop)
    checkStarts(cx, producer, consumer, at)
    const fixed = matchLoops(cx, producer, at.loop, produced)
    const moved = restrict(cx, producer, fixed)
    const shrunk = replaceStmt(cx.kernel.body, producer, () => [])
    const loop = findByVar(shrunk, at.loop.var)
    const body = replaceStmt(shrunk, loop, (l) =>
      stmt<For>({ ...(l as For), body: [...moved, ...(l as For).body] }),
    )
    checkPrivate(cx, body, at, produced)
    return {
      body,
      gone: loopsOf([producer])
        .filter((l) => fixed.has(l.var))
        .map((l) => gone(l, 'merged', [at.loop.name])),
    }
  },
  example: {
    before: twoNests,
    step: { kind: 'compute_at', nest: 'produce', at: 'consume.i' },
    after: `\
for i2 (consume.i) in 0..m
  for k in 0..d
    T[i2, k] = X[i2, k] * X[i2, k]
  for k2 (consume.k) in 0..d  reduce
    y[i2] += T[i2, k2]  init`,
  },
})

const findByVar = (body: Body, name: string): For => loopsOf(body).find((l) => l.var === name)!

const belongsTo = (s: Stmt, nest: string): boolean => s.kind === 'for' && s.nest === nest

/** The producer and the statement around the consumer's loop, in one list, in this order. */
function findProducer(cx: Context, nest: string, at: Found): { list: Body; producer: For; consumer: Stmt } {
  let out: { list: Body; producer: For; consumer: Stmt } | undefined
  const holds = (s: Stmt): boolean => someStmt([s], (x) => x === at.loop)
  const beside = new Set<string>()
  const visit = (list: Body): void => {
    const from = list.findIndex((s) => belongsTo(s, nest))
    const to = list.findIndex(holds)
    if (to >= 0) for (const s of list) if (s.kind === 'for' && !holds(s)) beside.add(s.nest)
    if (from >= 0 && to > from && !out) out = { list, producer: list[from] as For, consumer: list[to]! }
    for (const s of list) for (const b of bodiesOf(s)) visit(b)
  }
  visit(cx.kernel.body)
  if (out) return out
  const nests = [...new Set(loopsOf(cx.kernel.body).map((l) => l.nest))]
  const known = nests.includes(nest)
  return cx.refuse({
    code: known ? 'not-before' : 'unknown-nest',
    message: known
      ? `${nest} does not stand beside the nest around ${at.loop.name}`
      : `there is no nest ${nest}`,
    loops: [at.loop],
    expected:
      known && beside.size === 0
        ? `an iteration beside that of ${at.loop.name}, and there is none`
        : `one of ${(known ? [...beside] : nests).join(', ')}`,
    ...(known ? {} : { lookup: { name: nest, candidates: nests } }),
  })
}

/** What the producer writes is read by the consumer's loop and by nothing else outside of the producer. */
function checkProducts(cx: Context, producer: For, loop: For): ReadonlySet<string> {
  const own = accessesOf([producer])
  const local = allocations([producer])
  const produced = new Set(own.flatMap((a) => (a.mode === 'write' && !local.has(a.buffer) ? [a.buffer] : [])))
  const inside = new Set<Stmt>()
  walkStmts([producer, ...loop.body], (s) => inside.add(s))
  for (const name of produced) {
    const { role } = cx.buffer(name)
    if (role !== 'local')
      cx.refuse({
        code: 'output-needed',
        message: `${producer.nest} writes ${name}, which leaves the kernel`,
        loops: [producer],
        expected: 'a nest that writes local buffers',
      })
    const elsewhere = accessesOf(cx.kernel.body).find(
      (a) => a.buffer === name && !inside.has(a.stmt) && a.stmt.kind !== 'fill',
    )
    if (elsewhere)
      cx.refuse({
        code: 'used-elsewhere',
        message: `${name} is also used outside of ${loop.name}`,
        loops: [producer, loop, ...elsewhere.path.slice(0, 1)],
        hint: 'choose a loop around all uses',
      })
  }
  if (!accessesOf(loop.body).some((a) => produced.has(a.buffer)))
    cx.refuse({
      code: 'not-read',
      message: `${loop.name} reads nothing that ${producer.nest} writes`,
      loops: [producer, loop],
      hint: 'choose a loop around the reads',
    })
  return produced
}

/** Nothing after the producer writes what it reads. */
function checkBetween(cx: Context, list: Body, producer: For, consumer: Stmt, loop: For): void {
  const reads = new Set(accessesOf([producer]).map((a) => a.buffer))
  const between = list.slice(list.indexOf(producer) + 1, list.indexOf(consumer) + 1)
  const written = accessesOf(between).find((a) => a.mode === 'write' && reads.has(a.buffer))
  if (!written) return
  cx.refuse({
    code: 'order-matters',
    message: `${producer.nest} uses ${written.buffer}, which is written before ${loop.name} is reached`,
    loops: [producer, loop],
    hint: `leave ${producer.nest} a nest of its own`,
  })
}

/** An initialisation stands before the outermost reduction loop, which must not become one of the consumer's. */
function checkStarts(cx: Context, producer: For, consumer: Stmt, at: Found): void {
  if (initsOf([producer]).length === 0) return
  const around = [...at.path, at.loop]
  const own = around.slice(Math.max(0, around.indexOf(consumer as For)))
  const reducing = own.find((l) => l.reduce)
  if (!reducing) return
  cx.refuse({
    code: 'starts-in-reduction',
    message: `${producer.nest} starts its sums anew, and ${reducing.name} is a reduction loop`,
    loops: [producer, reducing],
    hint: `choose a loop outside of ${reducing.name}`,
  })
}

/** Loops of the producer that a fixed index of the consumer replaces. */
function matchLoops(
  cx: Context,
  producer: For,
  loop: For,
  produced: ReadonlySet<string>,
): ReadonlyMap<string, Expr> {
  const moving = boundVarsOf(loop.body)
  const [indptr, inside] = [offsetsIn(cx.kernel.buffers), (l: For): Space['inner'] => loopMap(loopsOf([l]))]
  const reads = accessesOf(loop.body).filter((a) => produced.has(a.buffer))
  const writes = accessesOf([producer]).filter((a) => produced.has(a.buffer))
  const out = new Map<string, Expr>()
  for (const l of loopsOf([producer])) {
    if (l.reduce || l.mode.kind !== 'serial') continue
    const values = [...produced].map((buffer) =>
      fixedValue(
        l.var,
        reads.filter((a) => a.buffer === buffer).map((a) => anchors(a, { inner: inside(loop), indptr })),
        writes.filter((a) => a.buffer === buffer).map((a) => anchors(a, { inner: inside(producer), indptr })),
      ),
    )
    const value = values.find((v) => v !== null)
    if (!value || mentionsAny(value, moving)) continue
    if (values.every((v) => v === null || (v !== undefined && keyOf(v) === keyOf(value))))
      out.set(l.var, value)
  }
  return out
}

/** What names the part of a dimension that an access stays in: the index itself, or the row of its segment. */
interface Anchor {
  readonly kind: string
  readonly expr: Expr
}

const anchors = (a: BufferAccess, space: Space): readonly Anchor[] =>
  a.whole
    ? []
    : a.index.map((e) => {
        const segment = segmentOf(e, space)
        return segment ? { kind: segment.buffer, expr: segment.start } : { kind: 'index', expr: e }
      })

/**
 * The value that all reads have in the dimension that the producer writes by the loop `v`; `null` for a buffer
 * that nothing reads there.
 */
function fixedValue(
  v: string,
  reads: readonly (readonly Anchor[])[],
  writes: readonly (readonly Anchor[])[],
): Expr | null | undefined {
  const isVar = (a: Anchor | undefined): boolean => a?.expr.kind === 'var' && a.expr.name === v
  const d = writes[0]!.findIndex(isVar)
  const kind = writes[0]![d]?.kind
  if (d < 0 || writes.some((w) => !isVar(w[d]) || w[d]!.kind !== kind)) return undefined
  if (reads.length === 0) return null
  const value = reads[0]![d]
  const same = (r: Anchor | undefined): boolean =>
    r !== undefined && value !== undefined && r.kind === kind && keyOf(r.expr) === keyOf(value.expr)
  return reads.every((r) => same(r[d])) ? value?.expr : undefined
}

/** The producer at one value of each fixed loop; where that value may be out of the loop, under a condition. */
function restrict(cx: Context, producer: For, fixed: ReadonlyMap<string, Expr>): Body {
  const go = (body: Body, reducing: boolean): Body =>
    body.flatMap((s): Body => {
      const value = s.kind === 'for' ? fixed.get(s.var) : undefined
      if (s.kind !== 'for' || !value) {
        const bodies = bodiesOf(s).map((b) => go(b, reducing || (s.kind === 'for' && s.reduce)))
        return [withBodies(s, bodies)]
      }
      const conditions = [lt(value, s.extent), ...s.guards]
      const inner = go(s.body, reducing)
      if (withinExtent(cx, value, s.extent) && s.guards.length === 0) return inner
      if (reducing)
        cx.refuse({
          code: 'condition-in-reduction',
          message: `whether ${printExpr(value)} is in the range of ${s.name} is only known inside of a reduction`,
          loops: [producer, s],
          hint: `reorder ${s.name} outside of the reduction loops first`,
        })
      return [conditions.reduceRight<Body>((then, cond): Body => [when(cond, then)], inner)[0]!]
    })
  return substituteStmts(go([producer], false), fixed)
}

/** The value is a loop variable with this very extent, or a guard of the kernel says that it is below it. */
function withinExtent(cx: Context, value: Expr, extent: Expr): boolean {
  if (!overParams(cx, extent)) return false
  const loops = loopsOf(cx.kernel.body)
  const used = freeVars(value)
  if (value.kind === 'var') {
    const l = loops.find((x) => x.var === value.name)
    if (l && sameExpr(l.extent, extent)) return true
  }
  const key = keyOf(lt(value, extent))
  return loops.some((l) => used.has(l.var) && l.guards.some((g) => keyOf(g) === key))
}

/** Each iteration of the loops around computes elements of its own. */
function checkPrivate(cx: Context, body: Body, at: Found, produced: ReadonlySet<string>): void {
  const kernel = { ...cx.kernel, body }
  for (const l of [...at.path, at.loop]) {
    const now = findByVar(body, l.var)
    const clash = writtenIn(kernel, now).find((w) => produced.has(w.buffer) && !w.disjoint)
    if (!clash) continue
    const before = writtenIn(cx.kernel, l).some((w) => w.buffer === clash.buffer)
    cx.refuse({
      code: before ? 'order-matters' : 'computed-again',
      message: `iterations of ${l.name} would compute the same elements of ${clash.buffer}`,
      loops: [l, at.loop],
      expected: `${clash.buffer} indexed by ${l.name} where ${at.loop.name} reads it`,
      hint: 'choose a loop further out, or a consumer that names the element by its own loop',
    })
  }
}
