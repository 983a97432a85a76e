/**
 * `A as bsr(16)`: stores the tensors that share A's structure in another format (SparseTIR's decompose_format,
 * section 3.2.2, for one part). The old axes leave the kernel; every iteration over them runs over the new axes,
 * with the old coordinates computed by the format's inverse map; every access goes through its map.
 */
import { fail } from '../../ast/diagnostic.ts'
import { instantiateFormat } from '../../formats/instantiate.ts'
import { type Axis, isStored, parentOf, type StoredAxis } from '../../ir/axis.ts'
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
import type { Format } from '../../ir/format.ts'
import type { Buffer1, Iter, Iteration, Kernel1, Reformat, Stmt1 } from '../../ir/stage1.ts'
import { checkPadding } from './padding.ts'
import { withRepeats } from './repeats.ts'
import type { AsStep, CoordExample } from './steps.ts'

export function applyAs(kernel: Kernel1, step: AsStep): Kernel1 {
  const at = step.span ? { span: step.span } : {}
  const buffer = kernel.buffers.find((b) => b.name === step.buffer)
  if (!buffer) {
    const candidates = kernel.buffers.map((b) => b.name)
    return fail({
      code: 'schedule/unknown-buffer',
      message: `there is no buffer ${step.buffer}`,
      ...at,
      lookup: { name: step.buffer, candidates },
      expected: `one of ${candidates.join(', ')}`,
    })
  }
  const axes = new Map(kernel.axes.map((a) => [a.name, a]))
  const over = chosenAxes(buffer, axes, step.format, at)
  const taken = new Set([
    ...kernel.axes.map((a) => a.name),
    ...kernel.params.map((p) => p.name),
    ...kernel.buffers.map((b) => b.name),
    ...iterNames(kernel.body),
    // Names of earlier formats are still in use: data reach the kernel through them.
    ...kernel.reformats.flatMap((r) => [...r.from.map((a) => a.name), ...r.to]),
  ])
  const leaving = new Set(over.filter((a) => leaves(a, over)).map((a) => a.name))
  const renamed = new Map<string, string>()
  const rename = (name: string): string => {
    const known = renamed.get(name)
    if (known) return known
    let out = name
    for (let k = 2; taken.has(out); k++) out = `${name}_${k}`
    taken.add(out)
    renamed.set(name, out)
    return out
  }
  const instance = instantiateFormat(
    step.format,
    step.args.map((n) => int(n)),
    over,
    rename,
  )
  for (const a of kernel.axes) {
    const uses = isStored(a)
      ? leaving.has(parentOf(a) ?? '') && !leaving.has(a.name)
        ? parentOf(a)
        : null
      : ('members' in a ? a.members : 'parent' in a ? [a.base, a.parent] : [a.base]).find((x) =>
          leaving.has(x),
        )
    if (uses)
      fail({
        code: 'schedule/format-children',
        message: `axis ${a.name} lies under ${uses}, which ${instance.text} replaces`,
        ...at,
        expected: 'a format over the whole chain of axes',
        hint: `choose a format that is also over ${a.name}`,
      })
  }
  const context: Rewrite = { over, leaving, instance, rename: renamed, at }
  const buffers = kernel.buffers.map((b) =>
    b.axes.some((a) => leaving.has(a)) ? replaceAxes(b, context, at) : b,
  )
  const changed = kernel.buffers.filter((b, k) => buffers[k] !== b)
  checkPadding(kernel, { over, changed, instance, leaving }, at)
  const reformat: Reformat = {
    format: instance.text,
    from: over,
    to: instance.order,
    map: instance.map,
    inverse: instance.inverse,
    buffers: changed.map((b) => ({ name: b.name, axes: b.axes })),
  }
  const touched = new Map(changed.map((b) => [b.name, b]))
  const body = rewriteBody(kernel.body, context, touched, {
    values: new Map(),
    placed: new Set(),
    axes: new Set(),
  })
  const next: Kernel1 = {
    ...kernel,
    params: [...kernel.params, ...instance.measured],
    axes: [...kernel.axes.filter((a) => !leaving.has(a.name)), ...instance.axes],
    buffers,
    body,
    reformats: [...kernel.reformats, reformat],
  }
  return withRepeats(next, instance.axes, instance.text, at)
}

interface Rewrite {
  readonly over: readonly StoredAxis[]
  /** Old axes that leave the kernel; a dense root stays, others may be over it. */
  readonly leaving: ReadonlySet<string>
  readonly instance: ReturnType<typeof instantiateFormat>
  readonly rename: ReadonlyMap<string, string>
  /** Where the step stands, for refusals. */
  readonly at: object
}

const leaves = (a: StoredAxis, over: readonly StoredAxis[]): boolean =>
  a.kind !== 'dense_fixed' || over.every((x) => x.kind === 'dense_fixed')

/** The buffer's axes that the format stands in for: the chain of its structured axis, or its last ones. */
function chosenAxes(b: Buffer1, axes: ReadonlyMap<string, Axis>, format: Format, at: object): StoredAxis[] {
  const stored = b.axes.map((a) => axes.get(a) as StoredAxis)
  const n = format.over.length
  const leaf = stored.findLastIndex((a) => a.kind !== 'dense_fixed')
  const end = leaf >= 0 && leaf + 1 >= n ? leaf + 1 : stored.length
  if (end < n)
    fail({
      code: 'schedule/format-rank',
      message: `format ${format.name} replaces ${n} axes; ${b.name} is over [${b.axes.join(', ')}]`,
      ...at,
      expected: `a buffer with at least ${n} axes`,
      hint: 'choose a format over as many dimensions',
    })
  const over = stored.slice(end - n, end)
  const names = new Set(over.map((a) => a.name))
  for (const a of over) {
    const p = parentOf(a)
    if (p !== null && !names.has(p))
      fail({
        code: 'schedule/format-rank',
        message: `format ${format.name} would replace ${a.name} but not its parent ${p}`,
        ...at,
        expected: 'a format over the whole chain of axes',
        hint: `choose a format over ${p} and ${a.name}`,
      })
  }
  return over
}

function replaceAxes(b: Buffer1, c: Rewrite, at: object): Buffer1 {
  const names = c.over.map((a) => a.name)
  const start = b.axes.indexOf(names[0]!)
  if (start < 0 || names.some((n, k) => b.axes[start + k] !== n))
    fail({
      code: 'schedule/format-shared',
      message: `${b.name} shares axes with the reformatted tensor, but is over [${b.axes.join(', ')}]`,
      ...at,
      expected: `[…, ${names.join(', ')}, …]`,
      hint: `declare ${b.name} over the same axes in the same order`,
    })
  return {
    ...b,
    axes: [...b.axes.slice(0, start), ...c.instance.order, ...b.axes.slice(start + names.length)],
  }
}

/** What enclosing iterations opened: old iterators by their values, new axes by name. */
interface Open {
  readonly values: ReadonlyMap<string, Expr>
  readonly placed: ReadonlySet<string>
  /** Old axes whose coordinates are known. */
  readonly axes: ReadonlySet<string>
}

function rewriteBody(
  body: readonly Stmt1[],
  c: Rewrite,
  touched: ReadonlyMap<string, Buffer1>,
  open: Open,
): Stmt1[] {
  return body.map((s) => rewriteStmt(s, c, touched, open))
}

function rewriteStmt(s: Stmt1, c: Rewrite, touched: ReadonlyMap<string, Buffer1>, open: Open): Stmt1 {
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
  c: Rewrite,
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
  c: Rewrite,
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
  c: Rewrite,
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
function innerUse(it: Iteration, c: Rewrite): Iter | undefined {
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
function ordered(c: Rewrite, wanted: ReadonlySet<string>): string[] {
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
function inRange(e: Expr, old: StoredAxis, c: Rewrite): Expr[] {
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
  c: Rewrite,
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

function iterNames(body: readonly Stmt1[]): string[] {
  return body.flatMap((s) =>
    s.kind === 'iterate'
      ? [...s.iters.map((x) => x.name), ...iterNames(s.body)]
      : s.kind === 'if'
        ? [...iterNames(s.then), ...iterNames(s.else)]
        : s.kind === 'let'
          ? [s.name]
          : [],
  )
}

export const example: CoordExample = {
  before: `format blocks(b) over (i, j) {
  axis io = dense_fixed(ceildiv(i, b))
  axis jo = sparse_variable(io, ceildiv(j, b))
  axis ii = dense_fixed(b)
  axis ji = dense_fixed(b)
  map (i, j) -> (i / b, j / b, i % b, j % b)
  inverse (io, jo, ii, ji) -> (io * b + ii, jo * b + ji)
}
kernel k(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  axis jd = dense_fixed(n)
  buffer A: f32[i, j] in
  buffer x: f32[jd] in
  buffer y: f32[i] out
  iterate sum [i, j] as SR {
    y[i] += A[i, j] * x[j]
  }
}`,
  steps: 'A as blocks(2)',
  after: `kernel k(m: size, n: size) {
  axis i = dense_fixed(m)
  axis jd = dense_fixed(n)
  axis io = dense_fixed(ceildiv(m, 2))
  axis jo = sparse_variable(io, ceildiv(n, 2))
  axis ii = dense_fixed(2)
  axis ji = dense_fixed(2)
  buffer A: f32[io, jo, ii, ji] in
  buffer x: f32[jd] in
  buffer y: f32[i] out
  iterate sum [io, jo, ii, ji] as SRSR where (io * 2 + ii < m and jo * 2 + ji < n) {
    y[io * 2 + ii] += A[io, jo, ii, ji] * x[jo * 2 + ji]
  }
}`,
}
