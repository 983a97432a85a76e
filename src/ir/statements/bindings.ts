/** Names in statements: bound names, free names, substitution and renaming. */

import { type Expr, type Load, load, type Search, variable } from '../expressions/expr.ts'
import { freeVars } from '../expressions/expr-tree.ts'
import { sameData } from '../expressions/structural-equality.ts'
import { mapSame } from '../lists.ts'
import { allocations, boundBy } from './definitions.ts'
import type { Buffer, Fill, For, Stmt } from './loops.ts'
import { type Body, exprsOf, mapPieces, rewriteStmts, stmt, walkStmts } from './tree.ts'

/** Names bound anywhere inside: loop variables and lets. */
export function boundVarsOf(body: Body): ReadonlySet<string> {
  const out = new Set<string>()
  walkStmts(body, (s) => {
    if (s.kind !== 'alloc') for (const name of boundBy(s)) out.add(name)
  })
  return out
}

/** Names of the buffers allocated inside, in any memory or in the given one. */
export const allocatedNames = (body: Body, scope?: Buffer['scope']): ReadonlySet<string> =>
  new Set(
    [...allocations(body).values()].flatMap((b) =>
      scope === undefined || b.scope === scope ? [b.name] : [],
    ),
  )

/** Names that statements use and that are bound outside, parameters included. */
export function freeVarsOf(body: Body): ReadonlySet<string> {
  const names = new Set<string>()
  walkStmts(body, (s) => {
    for (const e of exprsOf(s)) for (const v of freeVars(e)) names.add(v)
  })
  for (const v of boundVarsOf(body)) names.delete(v)
  return names
}

/** Replaces variables by name. Names are unique in a kernel, so nothing is captured. */
export function substituteStmts(body: Body, map: ReadonlyMap<string, Expr>): Body {
  if (map.size === 0) return body
  return rewriteStmts(body, { expr: (e) => (e.kind === 'var' ? map.get(e.name) : undefined) })
}

/**
 * Renames the variables that statements bind (loops and lets), uses included, and replaces other variables by `values`.
 * `copy`: every statement is a new object.
 */
export function renameBound(
  body: Body,
  rename: ReadonlyMap<string, string>,
  { values, copy }: { readonly values?: ReadonlyMap<string, Expr>; readonly copy?: boolean } = {},
): Body {
  const uses = new Map<string, Expr>(values)
  const copyIfRequested = (s: Stmt): Stmt | undefined => (copy ? stmt({ ...s }) : undefined)
  walkStmts(body, (s) => {
    if (s.kind === 'for' && rename.has(s.var)) uses.set(s.var, variable(rename.get(s.var)!))
    if (s.kind === 'let' && rename.has(s.name)) uses.set(s.name, variable(rename.get(s.name)!, s.dtype))
  })
  return rewriteStmts(body, {
    expr: (e) => (e.kind === 'var' ? uses.get(e.name) : undefined),
    stmt: (s) => {
      if (s.kind === 'for') {
        const { mode } = s
        const outerName = mode.kind === 'accumulate' && mode.within ? rename.get(mode.within) : undefined
        const name = rename.get(s.var)
        if (name === undefined && outerName === undefined) return copyIfRequested(s)
        return stmt({
          ...s,
          var: name ?? s.var,
          mode: outerName === undefined ? mode : { ...mode, within: outerName },
        } as For)
      }
      if (s.kind === 'let' && rename.has(s.name)) return stmt({ ...s, name: rename.get(s.name)! })
      return copyIfRequested(s)
    },
  })
}

/** True if the statements are equal up to the names that they bind. */
export function sameStmts(a: Body, b: Body): boolean {
  const renumber = (body: Body): Body =>
    renameBound(body, new Map([...boundVarsOf(body)].map((v, k) => [v, `#${k}`])))
  return sameData(renumber(a), renumber(b))
}

/** Redirects every access to `from` (loads, searches, writes, allocations, fills) to `to`. */
export const renameBuffer = (body: Body, from: string, to: string): Body =>
  renameBuffers(body, new Map([[from, to]]))

export function renameBuffers(body: Body, names: ReadonlyMap<string, string>): Body {
  if (names.size === 0) return body
  return redirectAccesses(
    body,
    ({ buffer, index }) => (names.has(buffer) ? { buffer: names.get(buffer)!, index } : undefined),
    (b) => (names.has(b.name) ? [{ ...b, name: names.get(b.name)! }] : undefined),
  )
}

type Accessed = Pick<Load, 'buffer' | 'index'>

/**
 * Redirects accesses to other elements: of loads, stores, targets of reductions, and operands of instructions, and of searches, fills
 * and edges of rounds, whose kind is `whole`. `f` and `alloc` (for allocated buffers) return undefined for those that do not change.
 */
export function redirectAccesses(
  body: Body,
  f: (at: Accessed & { readonly kind?: string }) => Accessed | undefined,
  alloc: (b: Buffer) => readonly Buffer[] | undefined = () => undefined,
): Body {
  const moved = (l: Load): Load => {
    const to = f(l)
    return to ? load(to.buffer, to.index, l.dtype, l.span) : l
  }
  const whole = ({ buffer }: Pick<Search | Fill, 'buffer'>) => f({ kind: 'whole', buffer, index: [] })
  return rewriteStmts(body, {
    expr: (e) => {
      if (e.kind === 'load') return moved(e)
      const to = e.kind === 'search' ? whole(e) : undefined
      return to && Object.freeze({ ...e, buffer: to.buffer })
    },
    stmt: (s): Stmt | Body | undefined => {
      switch (s.kind) {
        case 'alloc':
          return alloc(s.buffer)?.map((buffer) => stmt({ ...s, buffer: Object.freeze(buffer) }))
        case 'fill': {
          const to = whole(s)
          return to && stmt({ ...s, buffer: to.buffer })
        }
        case 'rounds': {
          const carried = mapSame(s.carried, (buffer) => whole({ buffer })?.buffer ?? buffer)
          return carried === s.carried ? undefined : stmt({ ...s, carried })
        }
        case 'store': {
          const to = f(s)
          return to && stmt({ ...s, buffer: to.buffer, index: to.index })
        }
        case 'reduce': {
          const targets = mapSame(s.targets, moved)
          return targets === s.targets ? undefined : stmt({ ...s, targets })
        }
        case 'instr':
          return mapPieces(s, (p) => {
            const to = p.kind === 'value' ? undefined : f(p)
            return to ? ({ ...p, buffer: to.buffer, index: to.index } as typeof p) : p
          })
        default:
          return undefined
      }
    },
  })
}
