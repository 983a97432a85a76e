/** Names in statements: which are bound and used, and statements with others in their place. */

import { boundBy } from './definitions.ts'
import { type Expr, load, variable } from './expr.ts'
import { freeVars } from './expr-tree.ts'
import type { Buffer, For } from './loops.ts'
import { sameData } from './structural-equality.ts'
import { type Body, exprsOf, mapPieces, rewriteStmts, stmt, walkStmts } from './tree.ts'

/** Names bound anywhere inside: loop variables and lets. */
export function boundVarsOf(body: Body): ReadonlySet<string> {
  const out = new Set<string>()
  walkStmts(body, (s) => {
    if (s.kind !== 'alloc') for (const name of boundBy(s)) out.add(name)
  })
  return out
}

/** Buffers that are allocated inside, in this memory or in any. */
export function allocatedIn(body: Body, scope?: Buffer['scope']): ReadonlySet<string> {
  const out = new Set<string>()
  walkStmts(body, (s) => {
    if (s.kind === 'alloc' && (scope === undefined || s.buffer.scope === scope)) out.add(s.buffer.name)
  })
  return out
}

/** Names that are used inside and bound outside (params included). */
export function freeVarsOf(body: Body): ReadonlySet<string> {
  const used = new Set<string>()
  walkStmts(body, (s) => {
    for (const e of exprsOf(s)) for (const v of freeVars(e)) used.add(v)
  })
  for (const v of boundVarsOf(body)) used.delete(v)
  return used
}

/** Replaces variables by name. Names are unique in a kernel, so nothing is captured. */
export function substituteStmts(body: Body, map: ReadonlyMap<string, Expr>): Body {
  if (map.size === 0) return body
  return rewriteStmts(body, { expr: (e) => (e.kind === 'var' ? map.get(e.name) : undefined) })
}

/** Renames the variables that statements bind (loops and lets), uses included. */
export function renameBound(body: Body, rename: ReadonlyMap<string, string>): Body {
  const uses = new Map<string, Expr>()
  walkStmts(body, (s) => {
    if (s.kind === 'for' && rename.has(s.var)) uses.set(s.var, variable(rename.get(s.var)!))
    if (s.kind === 'let' && rename.has(s.name)) uses.set(s.name, variable(rename.get(s.name)!, s.dtype))
  })
  return rewriteStmts(body, {
    expr: (e) => (e.kind === 'var' ? uses.get(e.name) : undefined),
    stmt: (s) => {
      if (s.kind === 'for') {
        const { mode } = s
        const within = mode.kind === 'accumulate' && mode.within ? rename.get(mode.within) : undefined
        const name = rename.get(s.var)
        if (name === undefined && within === undefined) return undefined
        return stmt({
          ...s,
          var: name ?? s.var,
          mode: within === undefined ? mode : { ...mode, within },
        } as For)
      }
      if (s.kind === 'let' && rename.has(s.name)) return stmt({ ...s, name: rename.get(s.name)! })
      return undefined
    },
  })
}

/** Whether statements are the same, whatever they call what they bind. */
export function sameStmts(a: Body, b: Body): boolean {
  const numbered = (body: Body): Body =>
    renameBound(body, new Map([...boundVarsOf(body)].map((v, k) => [v, `#${k}`])))
  return sameData(numbered(a), numbered(b))
}

/** Every access to `from` (loads, searches, writes, allocations, fills) goes to `to` instead. */
export function renameBuffer(body: Body, from: string, to: string): Body {
  return rewriteStmts(body, {
    expr: (e) => {
      if (e.kind === 'load' && e.buffer === from) return load(to, e.index, e.dtype, e.span)
      if (e.kind === 'search' && e.buffer === from) return Object.freeze({ ...e, buffer: to })
      return undefined
    },
    stmt: (s) => {
      if ((s.kind === 'store' || s.kind === 'fill') && s.buffer === from) return stmt({ ...s, buffer: to })
      if (s.kind === 'alloc' && s.buffer.name === from)
        return stmt({ ...s, buffer: Object.freeze({ ...s.buffer, name: to }) })
      if (s.kind === 'reduce' && s.targets.some((t) => t.buffer === from))
        return stmt({
          ...s,
          targets: s.targets.map((t) => (t.buffer === from ? load(to, t.index, t.dtype, t.span) : t)),
        })
      if (s.kind === 'instr')
        return mapPieces(s, (p) => (p.kind !== 'value' && p.buffer === from ? { ...p, buffer: to } : p))
      return undefined
    },
  })
}
