/**
 * AST → canonical text, what `spt fmt` writes. Parsing it gives the same AST back (spans aside), comments included;
 * lines are at most 100 characters where an expression can be broken.
 */
import { bracketed, commas, type Doc, group, layout, line, nest } from './doc.ts'
import type {
  AxisDecl,
  AxisDef,
  BufferDecl,
  Comment,
  CoordMap,
  Decl,
  Expr,
  File,
  Format,
  Ident,
  If,
  Import,
  Iterate,
  Kernel,
  LoopRef,
  Member,
  Monoid,
  Schedule,
  Step,
  Stmt,
  Trivia,
} from './nodes.ts'
import { exprDoc } from './print-expr.ts'

const WIDTH = 100

/** A whole file; ends with a line break unless it is empty. */
export function print(file: File): string {
  const p = new Printer()
  file.imports.forEach((i, k) => {
    p.item(i.trivia, k === 0, importDoc(i))
  })
  for (const d of file.decls) {
    p.gap()
    decl(p, d)
  }
  const end = file.trivia?.end ?? []
  if (end.length > 0) p.gap()
  p.comments(end, true)
  return p.text
}

export const printExpr = (e: Expr): string => layout(exprDoc(e), 0, Number.POSITIVE_INFINITY)

/** One step on one line, as schedules and traces show it. */
export const printStep = (s: Step): string => layout(stepDoc(s), 0, Number.POSITIVE_INFINITY)

/** Text under construction: whole lines, indented. */
class Printer {
  text = ''
  private indent = 0

  private line(text: string): void {
    this.text += `${' '.repeat(this.indent)}${text}\n`
  }

  /** A blank line, unless at the beginning. */
  gap(): void {
    if (this.text !== '') this.text += '\n'
  }

  comments(list: readonly Comment[] | undefined, first: boolean): void {
    list?.forEach((c, k) => {
      if (c.blank && !(first && k === 0)) this.gap()
      this.line(c.text)
    })
  }

  private leading(t: Trivia | undefined, first: boolean): void {
    this.comments(t?.before, first)
    if (t?.blank && !(first && !t.before?.length)) this.gap()
  }

  /** A line of its own (or several, where it is too long) with its comments; `first` of its block. */
  item(t: Trivia | undefined, first: boolean, doc: Doc): void {
    this.leading(t, first)
    this.line(layout(doc, this.indent, WIDTH) + trailing(t?.after))
  }

  /** `head { … }` with its comments. */
  block(t: Trivia | undefined, first: boolean, head: Doc, body: () => void): void {
    this.leading(t, first)
    this.braces(layout(head, this.indent, WIDTH), t?.open, t?.end, body)
    this.close(t?.after)
  }

  /** `head {`, the body, the comments at its end, and the indented brace with no line break. */
  braces(
    head: string,
    open: readonly Comment[] | undefined,
    end: readonly Comment[] | undefined,
    body: () => void,
  ): void {
    this.text += `${this.atLineStart ? ' '.repeat(this.indent) : ''}${head} {${trailing(open)}\n`
    const before = this.text.length
    this.indent += 2
    body()
    this.comments(end, this.text.length === before)
    this.indent -= 2
    if (this.text.length === before && !open?.length) this.text = `${this.text.trimEnd()}}`
    else this.text += `${' '.repeat(this.indent)}}`
  }

  close(after: readonly Comment[] | undefined): void {
    this.text += `${trailing(after)}\n`
  }

  private get atLineStart(): boolean {
    return this.text === '' || this.text.endsWith('\n')
  }

  if(s: If, first: boolean): void {
    this.leading(s.trivia, first)
    this.ifTail(s)
    this.close(s.trivia?.after)
  }

  private ifTail(s: If): void {
    const head = layout(['if ', bracketed('(', [exprDoc(s.cond)], ')')], this.indent, WIDTH)
    const t = s.trivia
    this.braces(head, t?.open, t?.end, () => stmts(this, s.then))
    if (s.else.length === 0 && !t?.openElse && !t?.endElse) return
    this.text += ' else'
    const [only] = s.else
    if (s.else.length === 1 && only?.kind === 'if' && chains(s, only)) {
      this.text += ' '
      this.ifTail(only)
    } else this.braces('', t?.openElse, t?.endElse, () => stmts(this, s.else))
  }
}

/** Whether an `if` alone in an `else` may stand as `else if`: no comment would lose its place. */
function chains(outer: If, inner: If): boolean {
  const { openElse, endElse } = outer.trivia ?? {}
  const { before, after } = inner.trivia ?? {}
  return !openElse && !endElse && !before && !after
}

const trailing = (after: readonly Comment[] | undefined): string =>
  (after ?? []).map((c) => ` ${c.text}`).join('')

// Declarations -------------------------------------------------------------------------------------------------

const names = (list: readonly Ident[]): string[] => list.map((n) => n.name)
const tuple = (list: readonly Doc[]): Doc => bracketed('(', list, ')')
/** `(…)`, or nothing for no parameters. */
const optional = (list: readonly Doc[]): Doc => (list.length === 0 ? '' : tuple(list))
const exprs = (list: readonly Expr[]): Doc[] => list.map(exprDoc)

function importDoc(i: Import): Doc {
  const path = `"${i.path.value}"`
  if (!i.names) return `import ${path}`
  const list = i.names.map((n) =>
    n.local.name === n.name.name ? n.name.name : `${n.name.name} as ${n.local.name}`,
  )
  return [group('import {', nest(line, commas(list)), line, '}'), ` from ${path}`]
}

function decl(p: Printer, d: Decl): void {
  if (d.kind === 'kernel') kernel(p, d)
  else if (d.kind === 'monoid') monoid(p, d)
  else if (d.kind === 'format') format(p, d)
  else schedule(p, d)
}

function kernel(p: Printer, k: Kernel): void {
  const params = k.params.map((x) => `${x.name.name}: ${x.type.name}`)
  p.block(k.trivia, true, [`kernel ${k.name.name}`, tuple(params)], () => members(p, k.members))
}

/** Axes and buffers that follow each other without a gap are aligned. */
function members(p: Printer, list: readonly Member[]): void {
  list.forEach((m, k) => {
    if (m.kind === 'iterate') stmt(p, m, k === 0)
    else if (m.kind === 'axis') p.item(m.trivia, k === 0, axisDoc(m, run(list, k)))
    else p.item(m.trivia, k === 0, bufferDoc(m, run(list, k)))
  })
}

/** The neighbours of `list[k]` that are of its kind, with no blank line or comment line between. */
function run<T extends { readonly kind: string; readonly trivia?: Trivia | undefined }, M extends T>(
  list: readonly T[],
  k: number,
): M[] {
  const breaks = (n: T): boolean => Boolean(n.trivia?.blank || n.trivia?.before)
  const kind = list[k]!.kind
  let start = k
  while (start > 0 && !breaks(list[start]!) && list[start - 1]!.kind === kind) start--
  let end = k + 1
  while (end < list.length && list[end]!.kind === kind && !breaks(list[end]!)) end++
  return list.slice(start, end) as M[]
}

const widest = (texts: readonly string[]): number => Math.max(...texts.map((t) => t.length))

function axisDoc(a: AxisDecl, peers: readonly AxisDecl[]): Doc {
  const name = a.name.name.padEnd(widest(peers.map((x) => x.name.name)))
  return [`axis ${name} = `, axisDefDoc(a.def)]
}

function axisDefDoc(d: AxisDef): Doc {
  const of = (...args: Doc[]): Doc => bracketed(`${d.kind}(`, args, ')')
  switch (d.kind) {
    case 'dense_fixed':
      return of(exprDoc(d.extent))
    case 'dense_variable':
      return of(d.parent.name, exprDoc(d.extent))
    case 'sparse_fixed':
      return [of(d.parent.name, exprDoc(d.extent), exprDoc(d.width)), modifiers(d)]
    case 'sparse_variable':
      return [of(...(d.parent ? [d.parent.name] : []), exprDoc(d.extent)), modifiers(d)]
    case 'fused':
      return of(...names(d.members))
    case 'attached':
      return of(d.base.name, d.parent.name)
    case 'gathered':
      return of(d.base.name, d.buffer.name)
  }
}

const modifiers = (d: { readonly ordered: boolean; readonly unique: boolean }): string =>
  (d.ordered ? '' : ' unordered') + (d.unique ? '' : ' nonunique')

const bufferHead = (b: BufferDecl): string => `${b.name.name}:`
const bufferType = (b: BufferDecl): string => `${b.type.name}[${names(b.axes).join(', ')}]`

function bufferDoc(b: BufferDecl, peers: readonly BufferDecl[]): Doc {
  const head = bufferHead(b).padEnd(widest(peers.map(bufferHead)))
  const type = bufferType(b).padEnd(widest(peers.map(bufferType)))
  return [
    `buffer ${head} ${type} ${b.role.name}`,
    b.fill ? [' fill ', exprDoc(b.fill)] : '',
    b.accumulate ? ` accumulate ${b.accumulate.name}` : '',
  ]
}

/** One value bare, several as a tuple. */
const values = (list: readonly Expr[]): Doc => (list.length === 1 ? exprDoc(list[0]!) : tuple(exprs(list)))

function monoid(p: Printer, m: Monoid): void {
  const fields = m.fields.map((f) => `${f.name.name}: ${f.type.name}`)
  p.block(m.trivia, true, [`monoid ${m.name.name}`, tuple(fields)], () => {
    p.item(m.parts?.identity, true, ['identity ', values(m.identity)])
    p.item(m.parts?.combine, false, [`combine (${m.left.name}, ${m.right.name}) = `, values(m.result)])
  })
}

function format(p: Printer, f: Format): void {
  const params = f.params.map((x): Doc => {
    if (x.measured) return `${x.name.name}: size`
    return x.default ? [`${x.name.name} = `, exprDoc(x.default)] : x.name.name
  })
  const head = [`format ${f.name.name}`, optional(params), ` over `, tuple(names(f.over))]
  p.block(f.trivia, true, head, () => {
    f.axes.forEach((a, k) => {
      p.item(a.trivia, k === 0, axisDoc(a, run(f.axes, k)))
    })
    const map = (word: string, m: CoordMap): Doc => [word, tuple(names(m.from)), ' -> ', tuple(exprs(m.to))]
    p.item(f.map.trivia, f.axes.length === 0, map('map ', f.map))
    p.item(f.inverse.trivia, false, map('inverse ', f.inverse))
  })
}

// Statements ---------------------------------------------------------------------------------------------------

function stmts(p: Printer, list: readonly Stmt[]): void {
  list.forEach((s, k) => {
    stmt(p, s, k === 0)
  })
}

function stmt(p: Printer, s: Stmt, first: boolean): void {
  if (s.kind === 'if') p.if(s, first)
  else if (s.kind === 'iterate') p.block(s.trivia, first, iterateHead(s), () => stmts(p, s.body))
  else if (s.kind === 'let') p.item(s.trivia, first, [`let ${s.name.name} = `, exprDoc(s.value)])
  else {
    const op = s.kind === 'assign' ? '=' : `${s.reducer.name}=`
    p.item(s.trivia, first, [values(s.targets), ` ${op} `, values(s.values)])
  }
}

function iterateHead(s: Iterate): Doc {
  const iters = s.iters.map((i) =>
    i.name.name === i.axis.name ? i.name.name : `${i.name.name} in ${i.axis.name}`,
  )
  const kinds = s.iters.length > 0 ? ` as ${s.iters.map((i) => i.mode).join('')}` : ''
  const where: Doc = s.where ? [' where (', exprDoc(s.where), ')'] : ''
  return [`iterate ${s.name.name} `, bracketed('[', iters, ']'), kinds, where]
}

// Schedules ----------------------------------------------------------------------------------------------------

function schedule(p: Printer, s: Schedule): void {
  const params = s.params.map(
    (x): Doc => (x.default ? [`${x.name.name} = `, exprDoc(x.default)] : x.name.name),
  )
  const head = [`schedule ${s.kernel.name}.${s.name.name}`, optional(params)]
  p.block(s.trivia, true, head, () => {
    s.steps.forEach((step, k) => {
      p.item(step.trivia, k === 0, stepDoc(step))
    })
  })
}

export const printLoop = (l: LoopRef): string => (l.nest ? `${l.nest.name}.${l.name.name}` : l.name.name)
const loops = (list: readonly LoopRef[]): Doc => tuple(list.map(printLoop))
const arrow = (into: Ident | null): string => (into ? ` -> ${into.name}` : '')
const arrows = (into: readonly Ident[] | null): Doc => (into ? [' -> ', tuple(names(into))] : '')

function stepDoc(s: Step): Doc {
  switch (s.kind) {
    case 'as':
      return [`${s.buffer.name} as ${s.format.name}`, optional(exprs(s.args))]
    case 'reorder':
      return ['reorder ', loops(s.loops)]
    case 'fuse':
      return ['fuse ', loops(s.loops), arrow(s.into)]
    case 'attach':
      return `attach ${printLoop(s.loop)} to ${printLoop(s.to)}`
    case 'split':
      return [`split ${printLoop(s.loop)} by `, exprDoc(s.by), arrows(s.into)]
    case 'tile':
      return ['tile ', loops(s.loops), ' by ', tuple(exprs(s.by)), arrows(s.into)]
    case 'bind':
      return group('bind ', nest(commas(s.binds.map((b) => `${printLoop(b.loop)} to ${b.to.name}`))))
    case 'unroll':
      return [`unroll ${printLoop(s.loop)}`, s.by ? [' by ', exprDoc(s.by)] : '']
    case 'vectorize':
      return `vectorize ${printLoop(s.loop)}`
    case 'cache_read':
    case 'cache_write':
      return `${s.kind} ${s.buffer.name} at ${printLoop(s.at)} in ${s.memory.name}${arrow(s.into)}`
    case 'compute_at':
      return `compute_at ${s.iteration.name} at ${printLoop(s.at)}`
    case 'fission':
      return `fission ${printLoop(s.loop)} after ${s.after.name}`
    case 'rfactor':
      return `rfactor ${printLoop(s.loop)}${arrow(s.into)}`
    case 'atomic':
      return `atomic ${s.buffer.name}`
    case 'use':
      return [`use ${s.schedule.name}`, optional(exprs(s.args))]
  }
}
