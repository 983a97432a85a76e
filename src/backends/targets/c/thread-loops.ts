/**
 * Threads of a block as loops over the statements between barriers (Stratton, Stone and Hwu, MCUDA, 2008): a barrier ends the
 * loops, and values that a thread keeps across it are stored in arrays with an element per thread. All threads of a block
 * reach a barrier or none does, so a loop or condition around one is uniform, and is evaluated once, for the first thread.
 */

import { add, type Expr, int, isOne, load, mul, variable } from '../../../ir/expressions/expr.ts'
import { freeVars, rewriteExpr } from '../../../ir/expressions/expr-tree.ts'
import { dimensionOf, levelOf } from '../../../ir/instructions/hardware-axes.ts'
import { accessesOf } from '../../../ir/statements/accesses.ts'
import type { Alloc, Buffer, Launch, Stmt } from '../../../ir/statements/loops.ts'
import { alloc, forLoop, local, store } from '../../../ir/statements/statement-builders.ts'
import {
  type Body,
  bodiesOf,
  exprsOf,
  hasBarrier,
  mapExprs,
  rewriteStmts,
  walkStmts,
  withBodies,
} from '../../../ir/statements/tree.ts'
import { computeType, type Dtype } from '../../../ir/values/dtype.ts'
import { lengthOf } from '../../print/printer.ts'

/** The launch with one thread per block, which loops over the original threads; their indices are variables. */
export function serialThreads(launch: Launch): Launch {
  const body = fission(replaceIndices(launch), launch.block)
  return { ...launch, body: Object.freeze(body) }
}

/** Replaces indices by variables; 0 for axes with a single index. */
const replaceIndices = ({ body, block, grid }: Launch): Body =>
  rewriteStmts(body, {
    expr: (e) => {
      if (e.kind !== 'builtin') return undefined
      const k = dimensionOf(e.axis)
      const isSingle = levelOf(e.axis) === 'thread' ? block[k] === 1 : isOne(grid[k]!)
      return isSingle ? int(0) : variable(e.axis)
    },
  })

/** Statements without a barrier (`group`), or a statement that contains barriers. */
type Region =
  | { readonly group: Body }
  | { readonly head: Stmt; readonly bodies: readonly (readonly Region[])[] }

function fission(body: Body, block: Launch['block']): Body {
  const [x, y, z] = block
  const indexOn = (axis: string, extent: number): Expr => (extent === 1 ? int(0) : variable(axis))
  const row = add(mul(indexOn('thread.z', z), int(y)), indexOn('thread.y', y))
  const thread = add(mul(row, int(x)), indexOn('thread.x', x))
  const shared: Alloc[] = []
  /** Arrays for names and registers that are live across barriers, by name. */
  const threadArrays = new Map<string, Buffer>()
  const regionsOf = (body: Body): readonly Region[] => {
    const out: Region[] = []
    let group: Stmt[] = []
    const endGroup = (): void => {
      if (group.length > 0) out.push({ group })
      group = []
    }
    for (const s of body) {
      if (s.kind === 'barrier') endGroup()
      else if (hasBarrier([s])) {
        endGroup()
        out.push({ head: s, bodies: bodiesOf(s).map((b) => regionsOf(b)) })
      } else group.push(...withoutShared(s))
    }
    endGroup()
    return out
  }
  /** Removes allocations of shared arrays, which are declared outside of the thread loops. */
  const withoutShared = (s: Stmt): Body =>
    rewriteStmts([s], {
      stmt: (x) => {
        if (x.kind !== 'alloc' || x.buffer.scope !== 'shared') return undefined
        shared.push(x)
        return []
      },
    })
  const findThreadArrays = (regions: readonly Region[]): void => {
    const uses = new Map<string, Set<Region>>()
    const candidates = new Map<string, { readonly dtype: Dtype; readonly length: number }>()
    const addUse = (name: string, region: Region): void =>
      void uses.set(name, (uses.get(name) ?? new Set()).add(region))
    const visit = (list: readonly Region[]): void => {
      for (const r of list) {
        if ('group' in r) {
          for (const s of r.group) {
            if (s.kind === 'let') candidates.set(s.name, { dtype: computeType(s.dtype), length: 1 })
            if (s.kind === 'alloc')
              candidates.set(s.buffer.name, { dtype: s.buffer.dtype, length: lengthOf(s.buffer) })
          }
          walkStmts(r.group, (s) => {
            if (s.kind === 'let') addUse(s.name, r)
            if (s.kind === 'alloc') addUse(s.buffer.name, r)
            for (const e of exprsOf(s)) for (const v of freeVars(e)) addUse(v, r)
          })
          for (const a of accessesOf(r.group)) addUse(a.buffer, r)
          continue
        }
        const head = withBodies(
          r.head,
          bodiesOf(r.head).map(() => []),
        )
        for (const e of exprsOf(head)) for (const v of freeVars(e)) addUse(v, r)
        for (const a of accessesOf([head])) addUse(a.buffer, r)
        r.bodies.forEach(visit)
      }
    }
    visit(regions)
    const threads = block[0] * block[1] * block[2]
    for (const [name, { dtype, length }] of candidates)
      if ((uses.get(name)?.size ?? 0) > 1) threadArrays.set(name, local(name, dtype, [int(threads * length)]))
  }
  const print = (regions: readonly Region[]): Body =>
    regions.flatMap((r): Body => {
      if ('group' in r) return loops(r.group.flatMap((s) => indexArrays(s, thread)))
      const bodies = r.bodies.map((list) => print(list))
      const head = withBodies(
        r.head,
        bodiesOf(r.head).map(() => []),
      )
      const forFirstThread = (e: Expr): Expr => withArrays(e, int(0), true)
      return [withBodies(mapExprs(head, forFirstThread), bodies)]
    })
  const loops = (body: Body): Body => {
    const axes = [...'xyz'].flatMap((d, k) => (block[k]! > 1 ? [[`thread.${d}`, block[k]!] as const] : []))
    return axes.reduce<Body>((inner, [name, extent]) => [forLoop(name, int(extent), inner)], body)
  }
  /** Replaces names and registers that are live across barriers by elements of their arrays. */
  const indexArrays = (s: Stmt, thread: Expr): Body => {
    if (s.kind === 'alloc' && threadArrays.has(s.buffer.name)) return []
    const bodies = bodiesOf(s).map((b) => b.flatMap((x) => indexArrays(x, thread)))
    const rewritten = withBodies(
      mapExprs(s, (e) => withArrays(e, thread, false)),
      bodies,
    )
    if (rewritten.kind === 'let' && threadArrays.has(rewritten.name))
      return [store(rewritten.name, [thread], rewritten.value)]
    const array = rewritten.kind === 'store' ? threadArrays.get(rewritten.buffer) : undefined
    if (rewritten.kind !== 'store' || !array) return [rewritten]
    return [store(rewritten.buffer, [elementIndex(array, rewritten.index[0]!, thread)], rewritten.value)]
  }
  const withArrays = (e: Expr, thread: Expr, isFirstThread: boolean): Expr =>
    rewriteExpr(e, (x) => {
      if (x.kind === 'var') {
        const array = threadArrays.get(x.name)
        if (array) return load(x.name, [thread], x.dtype)
        return isFirstThread && x.name.startsWith('thread.') ? int(0) : undefined
      }
      const array = x.kind === 'load' ? threadArrays.get(x.buffer) : undefined
      if (x.kind !== 'load' || !array) return undefined
      return load(
        x.buffer,
        [elementIndex(array, withArrays(x.index[0]!, thread, isFirstThread), thread)],
        x.dtype,
      )
    })
  const elementIndex = (array: Buffer, index: Expr, thread: Expr): Expr => {
    const threads = block[0] * block[1] * block[2]
    return add(mul(thread, int(lengthOf(array) / threads)), index)
  }
  const regions = regionsOf(body)
  findThreadArrays(regions)
  const inner = print(regions)
  return [...shared, ...[...threadArrays.values()].map((b) => alloc(b)), ...inner]
}
