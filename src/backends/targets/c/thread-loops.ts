/**
 * Threads of a block as loops over the statements between barriers (Stratton, Stone and Hwu, MCUDA, 2008): a barrier ends the
 * loops, and values that a thread keeps across it are stored in arrays with an element per thread. All threads of a block
 * reach a barrier or none does, so a loop or condition around one is uniform, and is evaluated once, for the first thread.
 */

import { invariant } from '../../../ast/diagnostic.ts'
import { accessesOf } from '../../../ir/accesses.ts'
import { computeType, type Dtype } from '../../../ir/dtype.ts'
import { add, type Expr, int, load, mul, variable } from '../../../ir/expr.ts'
import { freeVars, rewriteExpr } from '../../../ir/expr-tree.ts'
import { dimensionOf, levelOf } from '../../../ir/hardware-axes.ts'
import type { Alloc, Buffer, Launch, Stmt } from '../../../ir/loops.ts'
import { alloc, forLoop, local, store } from '../../../ir/statement-builders.ts'
import {
  type Body,
  bodiesOf,
  exprsOf,
  hasBarrier,
  mapExprs,
  walkStmts,
  withBodies,
} from '../../../ir/tree.ts'

const AXES = ['thread.z', 'thread.y', 'thread.x', 'block.z', 'block.y', 'block.x'] as const

/** The launch with no thread left but one for each block, whose indices are variables. */
export function serialThreads(launch: Launch): Launch {
  const body = launch.body.map((s) => withIndices(s, launch))
  return { ...launch, body: Object.freeze(new Fission(launch.block).launch(body)) }
}

/** Replaces indices by variables; 0 for axes with a single index. */
function withIndices(s: Stmt, launch: Launch): Stmt {
  const { block, grid } = launch
  const index = (axis: (typeof AXES)[number]): Expr => {
    const k = dimensionOf(axis)
    const extent = grid[k]!
    const alone = levelOf(axis) === 'thread' ? block[k] === 1 : extent.kind === 'const' && extent.value === 1
    return alone ? int(0) : variable(axis)
  }
  const replaced = (e: Expr): Expr =>
    rewriteExpr(e, (x) => (x.kind === 'builtin' ? index(x.axis) : undefined))
  const inside = bodiesOf(s).map((b) => b.map((x) => withIndices(x, launch)))
  return withBodies(mapExprs(s, replaced), inside)
}

/** Statements without a barrier (`group`), or a statement that contains barriers. */
type Region =
  | { readonly group: Body }
  | { readonly around: Stmt; readonly inside: readonly (readonly Region[])[] }

class Fission {
  readonly #block: Launch['block']
  readonly #shared: Alloc[] = []
  /** Names and registers that a thread keeps across barriers, by their name. */
  readonly #kept = new Map<string, Buffer>()

  constructor(block: Launch['block']) {
    this.#block = block
  }

  launch(body: Body): Body {
    const regions = this.#regions(body)
    this.#findKept(regions)
    const inner = this.#print(regions)
    return [...this.#shared, ...[...this.#kept.values()].map((b) => alloc(b)), ...inner]
  }

  #regions(body: Body): readonly Region[] {
    const out: Region[] = []
    let group: Stmt[] = []
    const end = (): void => {
      if (group.length > 0) out.push({ group })
      group = []
    }
    for (const s of body) {
      if (s.kind === 'alloc' && s.buffer.scope === 'shared') this.#shared.push(s)
      else if (s.kind === 'barrier') end()
      else if (hasBarrier([s])) {
        end()
        out.push({ around: s, inside: bodiesOf(s).map((b) => this.#regions(b)) })
      } else group.push(this.#withoutShared(s))
    }
    end()
    return out
  }

  /** Arrays that a block shares are declared around its threads. */
  #withoutShared(s: Stmt): Stmt {
    const bodies = bodiesOf(s)
    if (bodies.length === 0) return s
    const rest = bodies.map((b) =>
      b.flatMap((x): Body => {
        if (x.kind !== 'alloc' || x.buffer.scope !== 'shared') return [this.#withoutShared(x)]
        this.#shared.push(x)
        return []
      }),
    )
    return withBodies(s, rest)
  }

  #findKept(regions: readonly Region[]): void {
    const uses = new Map<string, Set<Region>>()
    const kept = new Map<string, { readonly dtype: Dtype; readonly length: number }>()
    const use = (name: string, at: Region): void => void uses.set(name, (uses.get(name) ?? new Set()).add(at))
    const visit = (list: readonly Region[]): void => {
      for (const r of list) {
        if ('group' in r) {
          for (const s of r.group) {
            if (s.kind === 'let') kept.set(s.name, { dtype: computeType(s.dtype), length: 1 })
            if (s.kind === 'alloc')
              kept.set(s.buffer.name, { dtype: s.buffer.dtype, length: lengthOf(s.buffer) })
          }
          walkStmts(r.group, (s) => {
            if (s.kind === 'let') use(s.name, r)
            if (s.kind === 'alloc') use(s.buffer.name, r)
            for (const e of exprsOf(s)) for (const v of freeVars(e)) use(v, r)
          })
          for (const a of accessesOf(r.group)) use(a.buffer, r)
          continue
        }
        const head = withBodies(
          r.around,
          bodiesOf(r.around).map(() => []),
        )
        for (const e of exprsOf(head)) for (const v of freeVars(e)) use(v, r)
        for (const a of accessesOf([head])) use(a.buffer, r)
        r.inside.forEach(visit)
      }
    }
    visit(regions)
    const threads = this.#block[0] * this.#block[1] * this.#block[2]
    for (const [name, { dtype, length }] of kept)
      if ((uses.get(name)?.size ?? 0) > 1) this.#kept.set(name, local(name, dtype, [int(threads * length)]))
  }

  #print(regions: readonly Region[]): Body {
    return regions.flatMap((r): Body => {
      if ('group' in r) return this.#loops(r.group.flatMap((s) => this.#indexed(s, this.#thread)))
      const inside = r.inside.map((list) => this.#print(list))
      const head = withBodies(
        r.around,
        bodiesOf(r.around).map(() => []),
      )
      const first = (e: Expr): Expr => this.#at(e, int(0), true)
      return [withBodies(mapExprs(head, first), inside)]
    })
  }

  /** The number of a thread in its block. */
  get #thread(): Expr {
    const [x, y, z] = this.#block
    const index = (axis: string, extent: number): Expr => (extent === 1 ? int(0) : variable(axis))
    const row = add(mul(index('thread.z', z), int(y)), index('thread.y', y))
    return add(mul(row, int(x)), index('thread.x', x))
  }

  #loops(body: Body): Body {
    const axes = [...'xyz'].flatMap((d, k) =>
      this.#block[k]! > 1 ? [[`thread.${d}`, this.#block[k]!] as const] : [],
    )
    return axes.reduce<Body>((inner, [name, extent]) => [forLoop(name, int(extent), inner)], body)
  }

  /** Indexes the arrays that hold a thread's values across barriers. */
  #indexed(s: Stmt, thread: Expr): Body {
    if (s.kind === 'alloc' && this.#kept.has(s.buffer.name)) return []
    const inside = bodiesOf(s).map((b) => b.flatMap((x) => this.#indexed(x, thread)))
    const own = withBodies(
      mapExprs(s, (e) => this.#at(e, thread, false)),
      inside,
    )
    if (own.kind === 'let' && this.#kept.has(own.name)) return [store(own.name, [thread], own.value)]
    const to = own.kind === 'store' ? this.#kept.get(own.buffer) : undefined
    if (own.kind !== 'store' || !to) return [own]
    return [store(own.buffer, [this.#place(to, own.index[0]!, thread)], own.value)]
  }

  #at(e: Expr, thread: Expr, first: boolean): Expr {
    return rewriteExpr(e, (x) => {
      if (x.kind === 'var') {
        const to = this.#kept.get(x.name)
        if (to) return load(x.name, [thread], x.dtype)
        return first && x.name.startsWith('thread.') ? int(0) : undefined
      }
      const to = x.kind === 'load' ? this.#kept.get(x.buffer) : undefined
      if (x.kind !== 'load' || !to) return undefined
      return load(x.buffer, [this.#place(to, this.#at(x.index[0]!, thread, first), thread)], x.dtype)
    })
  }

  #place(to: Buffer, index: Expr, thread: Expr): Expr {
    const threads = this.#block[0] * this.#block[1] * this.#block[2]
    return add(mul(thread, int(lengthOf(to) / threads)), index)
  }
}

function lengthOf(b: Buffer): number {
  const [length] = b.shape
  invariant(length?.kind === 'const', `the length of ${b.name} is not constant`)
  return length.value
}
