/**
 * Storage folding of a producer that runs again in each iteration of the consumer's loop: an iteration has private
 * memory of the size of the region that it reads.
 */

import { linear, minus } from '../../../analysis/integers/linear.ts'
import { cast, type Expr, int, load, sub, variable } from '../../../ir/expressions/expr.ts'
import { mentions, readsSome } from '../../../ir/expressions/expr-tree.ts'
import { boundIndex } from '../../../ir/instructions/hardware-axes.ts'
import type { Memory } from '../../../ir/instructions/instr.ts'
import { printExpr } from '../../../ir/print/print-stage2.ts'
import { accessesOf, offsetsIn } from '../../../ir/statements/accesses.ts'
import { type LoopLocation, loopsOf } from '../../../ir/statements/definitions.ts'
import type { Buffer, For, Stmt } from '../../../ir/statements/loops.ts'
import { reductionsOf, retarget } from '../../../ir/statements/reductions.ts'
import { alloc, forLoop, store } from '../../../ir/statements/statement-builders.ts'
import { type Body, rewriteStmts, stmt } from '../../../ir/statements/tree.ts'
import { overParams } from '../../legality/checks.ts'
import { SIZE_LIMIT } from '../../legality/footprint.ts'
import type { Context } from '../../state/context.ts'
import type { CacheScope } from '../../steps/arguments.ts'
import { localCopy } from '../caching/read-copies.ts'
import { sumText, type Windows } from './producer-region.ts'

/** The memory that the step requests for the region; without `scope`, the default. */
export interface Place {
  readonly scope?: CacheScope | undefined
  readonly memory?: Memory | undefined
}

/** First the dimensions of iterations with separate regions, then the dimensions of the region. */
interface Region {
  readonly of: Buffer
  readonly buffer: Buffer
  readonly iterations: readonly Expr[]
  readonly element: (index: readonly Expr[]) => readonly Expr[]
}

interface How {
  readonly nest: string
  readonly windows: Windows
  readonly place: Place
  /** The fallback for a region whose size is not constant or too large. */
  readonly otherwise: 'global' | 'refuse' | 'keep'
}

/**
 * Returns the body `inside` of the loop, which contains the producer's iterations, with private memory for the produced
 * buffers: registers, or shared memory if threads run inside of the loop. If the size is not a constant within the
 * limit, `otherwise` decides: with `global`, a global buffer has a part for each iteration of the surrounding loops.
 * @returns `undefined` if the buffers stay unchanged (`keep`)
 */
export function inPrivate(
  cx: Context,
  at: LoopLocation,
  inside: Body,
  { produced, ...how }: How & { readonly produced: ReadonlySet<string> },
): { readonly inside: Body; readonly buffers: readonly Buffer[] } | undefined {
  const found = [...produced].map((name) => {
    const of = cx.buffer(name)
    const isReduced = reductionsOf(inside).some((r) => r.reduce.targets.some((t) => t.buffer === name))
    const dtype = isReduced ? of.accumulate : of.dtype
    return regionOf(cx, at, { ...of, dtype }, how)
  })
  const regions = found.filter((r) => r !== undefined)
  if (regions.length < found.length) return undefined
  const local = regions.filter((r) => r.buffer.scope !== 'global')
  return {
    inside: [
      ...local.map((r) => alloc(r.buffer)),
      ...regions.flatMap((r) => filled(cx, r)),
      ...regions.reduce(relocated, inside),
    ],
    buffers: regions.filter((r) => !local.includes(r)).map((r) => r.buffer),
  }
}

/** The region of the buffer that one iteration reads, without dimensions that have a single index. */
interface Extent {
  readonly shape: readonly Expr[]
  readonly element: (index: readonly Expr[]) => readonly Expr[]
}

function extentOf(of: Buffer, windows: Windows): Extent {
  const window = new Map(
    [...windows.values()].flatMap((w) => {
      const d = w.dimensions.get(of.name)
      return d === undefined ? [] : [[d.d, { width: w.width, low: d.low }] as const]
    }),
  )
  const kept = [...of.shape.keys()].filter((d) => window.get(d)?.width !== null)
  return {
    shape: kept.map((d) => window.get(d)?.width ?? of.shape[d]!),
    element: (index) =>
      kept.map((d) => {
        const from = window.get(d)?.low
        return from ? distance(from, index[d]!) : index[d]!
      }),
  }
}

function regionOf(cx: Context, at: LoopLocation, of: Buffer, how: How): Region | undefined {
  const extent = extentOf(of, how.windows)
  const inside = withinLimit(cx, at, of, extent, how.place)
  if (inside || how.otherwise === 'keep') return inside
  const around = [...at.path, at.loop]
  const extents = around.map((l) => l.extent)
  if (how.otherwise === 'refuse' || ![...extents, ...extent.shape].every((e) => overParams(cx, e)))
    refuseSize(cx, at, of, extent, how)
  const name = cx.fresh(`${of.name}_${at.loop.name}`)
  return {
    of,
    buffer: Object.freeze({ ...cx.buffer(of.name), name, shape: [...extents, ...extent.shape] }),
    iterations: variables(around),
    element: extent.element,
  }
}

const variables = (loops: readonly For[]): readonly Expr[] => loops.map((l) => variable(l.var))

const scopeAt = (at: LoopLocation, place: Place): CacheScope =>
  place.scope ?? (loopsOf(at.loop.body).some((l) => boundIndex(l, 'thread')) ? 'shared' : 'register')

/** The region in registers or shared memory; undefined unless its size is a constant within their limit. */
function withinLimit(
  cx: Context,
  at: LoopLocation,
  of: Buffer,
  { shape, element }: Extent,
  place: Place,
): Region | undefined {
  const scope = scopeAt(at, place)
  const owners = scope === 'shared' ? [...at.path, at.loop].filter((l) => boundIndex(l, 'thread')) : []
  const sizes = [...owners.map((l) => l.extent), ...shape].map((e) =>
    e.kind === 'const' ? e.value : Number.NaN,
  )
  const total = sizes.reduce((n, m) => n * m, 1)
  if (!(total >= 1 && total <= SIZE_LIMIT[scope])) return undefined
  const copy = { name: cx.fresh(`${of.name}_${scope}`), dtype: of.dtype }
  const dims = sizes.length > 0 ? sizes : [1]
  return {
    of,
    buffer: localCopy(cx, at.loop, of, { scope, memory: place.memory }, { ...copy, shape: dims }),
    iterations: variables(owners),
    element: sizes.length > 0 ? element : () => [int(0)],
  }
}

function refuseSize(
  cx: Context,
  at: LoopLocation,
  of: Buffer,
  { shape }: Extent,
  { nest, place }: How,
): never {
  const scope = scopeAt(at, place)
  const lists = listLoops(cx, at.loop, of.name, nest)
  const alone = `leave ${nest} a separate loop nest`
  return cx.refuse('schedule/too-large', [at.loop], {
    message: `an iteration of ${at.loop.name} computes ${shape.map((e) => printExpr(e)).join(' × ')} elements of ${of.name}`,
    expected: `a constant number, at most ${SIZE_LIMIT[scope]} in ${scope === 'shared' ? 'shared memory' : 'registers'}`,
    hint:
      lists.length > 1
        ? `fuse (${lists.join(', ')}) -> ${at.loop.name}, before the first step on loops, or ${alone}`
        : loopsOf(at.loop.body).length > 0
          ? `split the loops and compute at a loop further inside, or ${alone}`
          : alone,
  })
}

/**
 * Returns the producer's loops over consecutive lists. After `fuse` of these loops, one variable is the position that
 * the consumer reads. Returns an empty list if the consumer's extent is not an offset.
 */
function listLoops(cx: Context, { extent }: For, buffer: string, nest: string): readonly string[] {
  if (extent.kind !== 'load' || !offsetsIn(cx.kernel.buffers).has(extent.buffer)) return []
  const write = accessesOf(cx.kernel.body).find(
    (a) => a.buffer === buffer && a.mode === 'write' && a.path[0]?.nest === nest,
  )
  const position = write?.index.find((e) => readsSome(e, new Set([extent.buffer])))
  return position
    ? write!.path.filter((l) => mentions(position, l.var)).map((l) => `${l.nest}.${l.name}`)
    : []
}

function distance(from: Expr, to: Expr): Expr {
  const sum = minus(linear(to), linear(from))
  return [...sum.terms.values()].every((t) => t.coefficient > 0) ? sumText(sum) : sub(to, from)
}

/** Statements that fill the region with the kernel's initial value of the buffer, if there is one. */
function filled(cx: Context, { of, buffer, iterations }: Region): Body {
  const fill = cx.kernel.body.find((s) => s.kind === 'fill' && s.buffer === of.name)
  if (fill?.kind !== 'fill') return []
  const own = buffer.shape.slice(iterations.length)
  const vars = own.map(() => cx.fresh('e'))
  const index = [...iterations, ...vars.map((v) => variable(v))]
  const write: Stmt = store(buffer.name, index, cast(fill.value, buffer.dtype))
  return [own.reduceRight<Stmt>((body, n, k) => forLoop(vars[k]!, n, [body], { nest: buffer.name }), write)]
}

function relocated(body: Body, { of, buffer, iterations, element }: Region): Body {
  const at = (index: readonly Expr[]): readonly Expr[] => [...iterations, ...element(index)]
  const isMine = (x: { readonly buffer: string }): boolean => x.buffer === of.name
  return rewriteStmts(body, {
    expr: (e) =>
      e.kind === 'load' && isMine(e)
        ? cast(load(buffer.name, at(e.index), buffer.dtype), e.dtype)
        : undefined,
    stmt: (s) => {
      if (s.kind === 'store' && isMine(s)) {
        const value = s.combined && s.value.kind === 'cast' ? s.value.x : s.value
        return stmt({ ...s, buffer: buffer.name, index: at(s.index), value: cast(value, buffer.dtype) })
      }
      if (s.kind !== 'reduce' || !s.targets.some(isMine)) return undefined
      const targets = s.targets.map((t) => (isMine(t) ? load(buffer.name, at(t.index), buffer.dtype) : t))
      return retarget({ ...s, atomic: s.atomic && buffer.scope !== 'register' }, targets)
    },
  })
}
