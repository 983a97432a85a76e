/**
 * Statements under a format: iterators over the replaced axes become iterators over the new ones, old coordinates
 * are computed by the inverse map, accesses go through the map (`as.ts` says when).
 */
import { fail } from '../../ast/diagnostic.ts'
import type { FormatInstance } from '../../formats/instantiate.ts'
import { parentOf, type StoredAxis } from '../../ir/axis.ts'
import {
  binary,
  type Expr,
  freeVars,
  int,
  load,
  lt,
  rewriteExpr,
  sameExpr,
  substitute,
  variable,
} from '../../ir/expr.ts'
import type { Buffer1, Iter, Iteration, Stmt1 } from '../../ir/stage1.ts'

/** A format in place of some axes of a kernel. */
export interface FormatRewrite {
  readonly over: readonly StoredAxis[]
  /** Old axes that leave the kernel; a dense root stays, others may be over it. */
  readonly leaving: ReadonlySet<string>
  readonly instance: FormatInstance
  readonly rename: ReadonlyMap<string, string>
  /** Where the step stands, for refusals. */
  readonly at: object
}

/** What enclosing iterations opened: old iterators by their values, new axes by name. */
interface Open {
  readonly values: ReadonlyMap<string, Expr>
  readonly placed: ReadonlySet<string>
  /** Old axes whose coordinates are known. */
  readonly axes: ReadonlySet<string>
}

const NOTHING_OPEN: Open = { values: new Map(), placed: new Set(), axes: new Set() }

/** A body over the new axes; `touched`: the buffers whose axes change, as they were. */
export function rewriteBody(
  body: readonly Stmt1[],
  c: FormatRewrite,
  touched: ReadonlyMap<string, Buffer1>,
  open: Open = NOTHING_OPEN,
): Stmt1[] {
  return body.map((s) => rewriteStmt(s, c, touched, open))
}

function rewriteStmt(s: Stmt1, c: FormatRewrite, touched: ReadonlyMap<string, Buffer1>, open: Open): Stmt1 {
  const expr = (e: Expr): Expr => through(e, c, touched, open.values)
  switch (s.kind) {
    case 'let':
      return { ...s, value: expr(s.value) }
    case 'if':
      return {
        ...s,
        cond: expr(s.cond),
        then: rewriteBody(s.then, c, touched, open),
        else: rewriteBody(s.else, c, touched, open),
      }
    case 'assign':
    case 'reduce':
      return { ...s, targets: s.targets.map((t) => expr(t) as typeof t), values: s.values.map(expr) }
    case 'iterate':
      return rewriteIteration(s, c, touched, open)
  }
}

/** Which iterations of a nest enter the replaced structure decides where the new iterators go. */
function rewriteIteration(
  it: Iteration,
  c: FormatRewrite,
  touched: ReadonlyMap<string, Buffer1>,
  open: Open,
): Iteration {
  const structured = it.iters.find((x) => c.leaving.has(x.axis)) ?? innerUse(it, c)
  if (!structured)
    return {
      ...it,
      where: it.where.map((w) => through(w, c, touched, open.values)),
      body: rewriteBody(it.body, c, touched, open),
    }
  const values = new Map(open.values)
  const where: Expr[] = []
  const iters: Iter[] = []
  const placed = new Set(open.placed)
  const ofAxis = new Map<string, Iter>(
    it.iters.filter((x) => c.over.some((a) => a.name === x.axis)).map((x) => [x.axis, x]),
  )
  const replace = (old: readonly Iter[]): void => {
    // New axes that some of these old coordinates need, in an order in which parents come first.
    const wanted = new Set(
      old.flatMap((x) => [...freeVars(c.instance.inverse[c.over.findIndex((a) => a.name === x.axis)]!)]),
    )
    const names = ordered(c, wanted).filter((name) => !placed.has(name))
    const known = new Set([...open.axes, ...old.map((x) => x.axis)])
    checkDetermined(it, c, wanted, names, known)
    checkAllVisited(it, c, names, known)
    for (const name of names) {
      placed.add(name)
      const user = old.find((x) =>
        freeVars(c.instance.inverse[c.over.findIndex((a) => a.name === x.axis)]!).has(name),
      )!
      iters.push({ name, axis: name, kind: user.kind, span: user.span })
    }
    for (const x of old) {
      const k = c.over.findIndex((a) => a.name === x.axis)
      const inverse = c.instance.inverse[k]!
      values.set(x.name, inverse)
      where.push(...inRange(inverse, c.over[k]!, c))
    }
  }
  const all = [...ofAxis.values()]
  let done = false
  for (const x of it.iters) {
    if (!ofAxis.has(x.axis)) iters.push(x)
    else if (!done) {
      replace(all)
      done = true
    }
  }
  return {
    ...it,
    iters,
    where: [...it.where.map((w) => through(w, c, touched, values)), ...where],
    body: rewriteBody(it.body, c, touched, {
      values,
      placed,
      axes: new Set([...open.axes, ...ofAxis.keys()]),
    }),
  }
}

/** Each combination of the old coordinates is one of the new: the others of the format have no say in them. */
function checkDetermined(
  it: Iteration,
  c: FormatRewrite,
  wanted: ReadonlySet<string>,
  names: readonly string[],
  open: ReadonlySet<string>,
): void {
  const old = c.over.map((a) => a.name)
  const free = names.find((name) => {
    const map = c.instance.map[c.instance.order.indexOf(name)]!
    return !wanted.has(name) || [...freeVars(map)].some((v) => old.includes(v) && !open.has(v))
  })
  if (free === undefined) return
  const missing = old.filter((a) => !open.has(a))
  fail({
    code: 'schedule/format-partial',
    message: `iteration ${it.name} is over ${[...open].join(', ')} alone, and ${c.instance.text} has no axes for ${open.size > 1 ? 'them' : 'it'} without ${missing.join(', ')}`,
    ...c.at,
    expected: `iterations over all of ${old.join(', ')}, or a format whose outer axes are those of ${[...open].join(', ')}`,
    hint: 'choose another format, or an iteration over an axis of its own',
  })
}

/** An iteration over dense axes alone visits every coordinate; a sparse axis would pass some over. */
function checkAllVisited(
  it: Iteration,
  c: FormatRewrite,
  names: readonly string[],
  open: ReadonlySet<string>,
): void {
  const dense = c.over.filter((a) => a.kind === 'dense_fixed').map((a) => a.name)
  // Over all of the format's dimensions, what is left out is `padding.ts`'s question.
  if ([...open].some((a) => !dense.includes(a)) || c.over.every((a) => open.has(a.name))) return
  const sparse = names.find((n) => c.instance.axes.find((a) => a.name === n)?.kind !== 'dense_fixed')
  const only = (body: readonly Stmt1[]): boolean =>
    body.every((s) => s.kind === 'iterate' && (s.iters.some((x) => c.leaving.has(x.axis)) || only(s.body)))
  if (sparse === undefined || only(it.body)) return
  fail({
    code: 'schedule/format-partial',
    message: `iteration ${it.name} is over all of ${[...open].join(', ')}, and ${c.instance.text} holds only some of it (axis ${sparse})`,
    ...c.at,
    expected: `a format with dense axes for ${[...open].join(', ')}`,
    hint: 'choose another format, or put what is done for every coordinate into an iteration of its own',
  })
}

/** An outer iteration over a kept axis belongs to the structure if an inner one enters what leaves. */
function innerUse(it: Iteration, c: FormatRewrite): Iter | undefined {
  const own = it.iters.find((x) => c.over.some((a) => a.name === x.axis))
  if (!own) return undefined
  const enters = (body: readonly Stmt1[]): boolean =>
    body.some((s) =>
      s.kind === 'iterate'
        ? s.iters.some((x) => c.leaving.has(x.axis)) || enters(s.body)
        : s.kind === 'if'
          ? enters(s.then) || enters(s.else)
          : false,
    )
  return enters(it.body) ? own : undefined
}

/** Declared order, except that a parent comes before its children. */
function ordered(c: FormatRewrite, wanted: ReadonlySet<string>): string[] {
  const parents = new Map(c.instance.axes.map((a) => [a.name, parentOf(a)]))
  const out: string[] = []
  const place = (name: string): void => {
    if (out.includes(name)) return
    const p = parents.get(name)
    if (p) place(p)
    out.push(name)
  }
  for (const name of c.instance.order) if (wanted.has(name)) place(name)
  return out
}

/** Conditions under which a computed old coordinate is one: none where the new axis ranges over just those. */
function inRange(e: Expr, old: StoredAxis, c: FormatRewrite): Expr[] {
  if (e.kind === 'var') {
    const axis = c.instance.axes.find((a) => a.name === e.name)
    if (axis && sameExpr(axis.extent, old.extent)) return []
  }
  const conditions: Expr[] = []
  if (mayBeNegative(e)) conditions.push(binary('ge', e, int(0)))
  conditions.push(lt(e, old.extent))
  return conditions
}

const mayBeNegative = (e: Expr): boolean =>
  e.kind === 'const'
    ? e.value < 0
    : e.kind === 'unary' ||
      (e.kind === 'binary' && (e.op === 'sub' || mayBeNegative(e.a) || mayBeNegative(e.b)))

/** An expression over old coordinates as one over new ones, reformatted accesses included. */
function through(
  e: Expr,
  c: FormatRewrite,
  touched: ReadonlyMap<string, Buffer1>,
  values: ReadonlyMap<string, Expr>,
): Expr {
  return rewriteExpr(e, (x) => {
    if (x.kind === 'var') return values.get(x.name)
    if (x.kind !== 'load') return undefined
    const b = touched.get(x.buffer)
    if (!b) return undefined
    const start = b.axes.indexOf(c.over[0]!.name)
    const old = x.index.slice(start, start + c.over.length)
    // The iterators' own coordinates are on the new axes already; others go through the map.
    const own = old.every((o, k) => sameExpr(o, c.instance.inverse[k]!))
    const map = new Map(c.over.map((a, k) => [a.name, old[k]!]))
    const index = own
      ? c.instance.order.map((n) => variable(n))
      : c.instance.map.map((m) => substitute(m, map))
    return load(
      x.buffer,
      [...x.index.slice(0, start), ...index, ...x.index.slice(start + c.over.length)],
      x.dtype,
      x.span,
    )
  })
}
