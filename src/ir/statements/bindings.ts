/** Names in statements: bound names, free names, substitution and renaming. */

import { type Expr, load, variable } from '../expressions/expr.ts'
import { freeVars } from '../expressions/expr-tree.ts'
import { sameData } from '../expressions/structural-equality.ts'
import { boundBy } from './definitions.ts'
import type { Buffer, For, Stmt } from './loops.ts'
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
export function allocatedNames(body: Body, scope?: Buffer['scope']): ReadonlySet<string> {
  const out = new Set<string>()
  walkStmts(body, (s) => {
    if (s.kind === 'alloc' && (scope === undefined || s.buffer.scope === scope)) out.add(s.buffer.name)
  })
  return out
}

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

/** `renameBuffer` for several buffers at once. */
export function renameBuffers(body: Body, names: ReadonlyMap<string, string>): Body {
  if (names.size === 0) return body
  return rewriteStmts(body, {
    expr: (e) => {
      if (e.kind !== 'load' && e.kind !== 'search') return undefined
      const to = names.get(e.buffer)
      if (to === undefined) return undefined
      return e.kind === 'load' ? load(to, e.index, e.dtype, e.span) : Object.freeze({ ...e, buffer: to })
    },
    stmt: (s) => {
      if (s.kind === 'store' || s.kind === 'fill') {
        const buffer = names.get(s.buffer)
        return buffer === undefined ? undefined : stmt({ ...s, buffer })
      }
      if (s.kind === 'alloc') {
        const name = names.get(s.buffer.name)
        return name === undefined ? undefined : stmt({ ...s, buffer: Object.freeze({ ...s.buffer, name }) })
      }
      if (s.kind === 'reduce' && s.targets.some((t) => names.has(t.buffer)))
        return stmt({
          ...s,
          targets: s.targets.map((t) =>
            names.has(t.buffer) ? load(names.get(t.buffer)!, t.index, t.dtype, t.span) : t,
          ),
        })
      if (s.kind === 'instr')
        return mapPieces(s, (p) =>
          p.kind !== 'value' && names.has(p.buffer) ? { ...p, buffer: names.get(p.buffer)! } : p,
        )
      return undefined
    },
  })
}
