/**
 * AST → canonical text, the output of `spt fmt`. Parsing it gives the same AST back (spans aside), including comments.
 * Lines have at most 120 characters if their expressions can be broken.
 */
import { quotedPath } from '../imports/resolve-path.ts'
import type * as ast from '../nodes/nodes.ts'
import type { Doc } from './layout-document.ts'
import { bracketList, commaSeparated, filled, group, layout, line, nest } from './layout-document.ts'
import { Printer } from './print-blocks.ts'
import { instanceDoc, paramText, printFormat, printInstr, printMemory } from './print-declarations.ts'
import {
  after,
  alignedPeers,
  axisDoc,
  callDoc,
  exprDoc,
  functionHead,
  maxLength,
  namedArgDoc,
  names,
  partsDoc,
  primaryDoc,
  scheduleHead,
  single,
  tuple,
  typeList,
  values,
  whereDoc,
} from './print-expr.ts'
import { groupDoc, printChoice, printSpace, printTable } from './print-spaces.ts'

/** A whole file; ends with a line break unless it is empty. */
export function print(file: ast.File): string {
  const p = new Printer()
  p.items(file.imports, importDoc)
  for (const d of file.decls) {
    p.section()
    printDeclaration(p, d)
  }
  const end = file.trivia?.end ?? []
  if (end.length > 0) p.section()
  p.comments(end)
  return p.text
}

/** A search space as in a file. Pages print no other declarations. */
export function printSpaceFile(s: ast.Space): string {
  const p = new Printer()
  p.section()
  printSpaceIn(p, s)
  return p.text
}

/** The format parts after `as`, on one line. */
export const printParts = (parts: readonly ast.AsPart[]): string =>
  layout(partsDoc(parts), 0, Number.POSITIVE_INFINITY)

export const printExpr = (e: ast.Expr): string => layout(exprDoc(e), 0, Number.POSITIVE_INFINITY)

/** One step on one line, as schedules and traces show it. */
export const printStep = (s: ast.Step): string => layout(stepDoc(s), 0, Number.POSITIVE_INFINITY)

/** The steps of a group on one line, in braces. */
export const printGroup = (g: Pick<ast.StepGroup, 'steps'>): string =>
  layout(groupDoc(g, stepDoc), 0, Number.POSITIVE_INFINITY)

// Declarations -------------------------------------------------------------------------------------------------

function importDoc(i: ast.Import): Doc {
  const path = quotedPath(i.path.value)
  if (!i.names) return `import ${path}`
  const list = i.names.map((n) =>
    n.local.name === n.name.name ? n.name.name : `${n.name.name} as ${n.local.name}`,
  )
  return [group('import {', nest(line, filled(list)), line, '}'), ` from ${path}`]
}

function printDeclaration(p: Printer, d: ast.File['decls'][number]): void {
  if (d.kind === 'kernel') printKernel(p, d)
  else if (d.kind === 'monoid') printMonoid(p, d)
  else if (d.kind === 'format') printFormat(p, d)
  else if (d.kind === 'memory') printMemory(p, d)
  else if (d.kind === 'table') printTable(p, d)
  else if (d.kind === 'instr') printInstr(p, d, (s) => printStatement(p, s))
  else if (d.kind === 'choice' && d.by === 'rules') printChoice(p, d)
  else if (d.kind === 'choice') printSpaceIn(p, d)
  else
    p.block(
      d.trivia,
      d.kind === 'function' ? functionHead(d) : scheduleHead(d),
      () => printSteps(p, d.steps),
      single(d.steps, stepOnLine),
    )
}

const printSpaceIn = (p: Printer, s: ast.Space): void =>
  printSpace(p, s, { doc: stepDoc, onLine: stepOnLine, printItem: printStepItem })

const parenthesised = (list: readonly ast.Ident[]): string => `(${names(list).join(', ')})`

function gradientDoc(k: ast.Kernel, g: ast.GradientOf): Doc {
  const more = (['stopping', 'recomputing', 'rounding'] as const).map((word) =>
    g[word].length > 0 ? ` ${word} ${parenthesised(g[word])}` : '',
  )
  const wrt = g.wrt.map((x) => `${x.dense ? 'dense ' : ''}${x.name}`).join(', ')
  const of = `${g.of.name.name}${typeList(names(g.of.types))}`
  return `gradient ${k.name.name} of ${of} by ${g.by.name} wrt (${wrt})${more.join('')}`
}

function printKernel(p: Printer, k: ast.Kernel): void {
  if (k.gradient) {
    p.item(k.trivia, gradientDoc(k, k.gradient))
    return
  }
  const params = k.params.map((x) => `${x.name.name}: ${x.type.name}`)
  const base = k.base ? ` extends ${k.base.name.name}${typeList(names(k.base.types))}` : ''
  const head = [`kernel ${k.name.name}${typeList(k.typeParams.map(paramText))}`, tuple(params), base]
  p.block(k.trivia, head, () => printMembers(p, k.members))
}

/** Consecutive axes and buffers without a gap are aligned. */
function printMembers(p: Printer, list: ast.Rounds['members']): void {
  for (const [k, m] of list.entries())
    if (m.kind === 'rounds_edge') continue
    else if (m.kind === 'rounds') p.block(m.trivia, roundsHead(m), () => printMembers(p, m.members))
    else if (m.kind === 'define')
      p.item(m.trivia, [`define ${m.name.name}(${names(m.params).join(', ')}) = `, exprDoc(m.value)])
    else if (m.kind === 'kernel_call') p.item(m.trivia, callStatementDoc(m))
    else if (m.kind === 'copies')
      p.block(m.trivia, `repeat ${m.count.value} as ${m.index.name}`, () => printMembers(p, m.members))
    else if (m.kind === 'axis') p.item(m.trivia, axisDoc(m, alignedPeers(list, k)))
    else if (m.kind === 'buffer') p.item(m.trivia, bufferDoc(m, alignedPeers(list, k)))
    else printStatement(p, m)
}

function callStatementDoc(c: ast.KernelCall): Doc {
  const results = names(c.results)
  const left = results.length === 0 ? '' : [results.length > 1 ? tuple(results) : results[0]!, ' = ']
  const head = `${c.kernel.name}${typeList(names(c.types))}(`
  return [
    'call ',
    left,
    bracketList(head, c.args.map(namedArgDoc), ')'),
    c.label ? ` as ${c.label.name}` : '',
  ]
}

const bufferHead = (b: ast.BufferDecl): string => `${b.name.name}:`
const bufferType = (b: ast.BufferDecl): string => `${b.type.name}[${names(b.axes).join(', ')}]`

function bufferDoc(b: ast.BufferDecl, peers: readonly ast.BufferDecl[]): Doc {
  const head = bufferHead(b).padEnd(maxLength(peers.map(bufferHead)))
  const type = bufferType(b).padEnd(maxLength(peers.map(bufferType)))
  return [
    `buffer ${head} ${type} ${b.role.name}`,
    after(' fill ', b.fill),
    b.accumulate ? ` accumulate ${b.accumulate.name}` : '',
  ]
}

function printMonoid(p: Printer, m: ast.Monoid): void {
  const fields = m.fields.map((f) => `${f.name.name}: ${f.type.name}`)
  p.block(m.trivia, [`monoid ${m.name.name}`, tuple(fields)], () => {
    p.item(m.lines?.identity, ['identity ', values(m.identity)])
    p.item(m.lines?.combine, [`combine (${m.left.name}, ${m.right.name}) = `, values(m.result)])
    const rule = m.derivative
    if (rule) {
      const operands = parenthesised([rule.operand, rule.result, rule.adjoint])
      p.item(undefined, [`derivative ${operands} = `, values(rule.values)])
    }
  })
}

// Statements ---------------------------------------------------------------------------------------------------

function printStatements(p: Printer, list: readonly ast.Stmt[]): void {
  for (const s of list) printStatement(p, s)
}

function printStatement(p: Printer, s: ast.Stmt): void {
  if (s.kind === 'if') p.if(s, (list) => printStatements(p, list), onlyUpdate(s))
  else if (s.kind === 'iterate')
    p.block(s.trivia, iterateHead(s), () => printStatements(p, s.body), single(s.body, conditionalDoc))
  else p.item(s.trivia, statementDoc(s))
}

function statementDoc(s: Exclude<ast.Stmt, ast.If | ast.Iterate>): Doc {
  if (s.kind === 'let') return [`let ${s.name.name} = `, exprDoc(s.value)]
  const op = s.kind === 'assign' ? '=' : `${s.reducer.name}=`
  return [values(s.targets), ` ${op} `, values(s.values)]
}

const updateDoc = (s: ast.Stmt): Doc | undefined =>
  s.kind === 'if' || s.kind === 'iterate' ? undefined : statementDoc(s)

/** The text of the only update under a condition. */
const onlyUpdate = (s: ast.If): Doc | undefined =>
  s.else.length === 0 && !s.trivia?.openElse && !s.trivia?.endElse ? single(s.then, updateDoc) : undefined

/** The text of an update, also under a condition. */
function conditionalDoc(s: ast.Stmt): Doc | undefined {
  if (s.kind !== 'if') return updateDoc(s)
  const only = s.trivia?.open || s.trivia?.end ? undefined : onlyUpdate(s)
  return only && ['if (', exprDoc(s.cond), ') { ', only, ' }']
}

const iterText = ({ name, axis }: Omit<ast.Iter, 'mode'>): string =>
  name.name === axis.name ? name.name : `${name.name} in ${axis.name}`

function roundsHead(r: ast.Rounds): Doc {
  const iter = r.iter ? `[${iterText(r.iter)}] as T` : '[]'
  return [`iterate ${r.name.name} ${iter}`, r.while ? [' while (', exprDoc(r.while), ')'] : '']
}

function iterateHead(s: ast.Iterate): Doc {
  const iters = s.iters.map(iterText)
  const kinds = s.iters.length > 0 ? ` as ${s.iters.map((i) => i.mode).join('')}` : ''
  return [`iterate ${s.name.name} `, bracketList('[', iters, ']'), kinds, whereDoc(s.where)]
}

// Schedules ----------------------------------------------------------------------------------------------------

function printSteps(p: Printer, list: readonly ast.Step[]): void {
  for (const step of list) printStepItem(p, step)
}

function printStepItem(p: Printer, step: ast.Step): void {
  if (step.kind === 'each')
    p.block(step.trivia, eachHead(step), () => printSteps(p, step.steps), single(step.steps, stepOnLine))
  else p.item(step.trivia, stepDoc(step))
}

/** The text of the only step of a body; undefined for an `each` with comments in it, or without a single step. */
function stepOnLine(s: ast.Step): Doc | undefined {
  if (s.kind !== 'each') return stepDoc(s)
  const hasComments = s.trivia?.open || s.trivia?.end
  return hasComments || single(s.steps, stepOnLine) === undefined ? undefined : stepDoc(s)
}

const eachHead = (s: ast.EachStep): Doc => `each ${s.what} of ${s.buffer.name} as ${s.as.name}`

export const printLoop = (l: ast.LoopRef): string => (l.nest ? `${l.nest.name}.${l.name.name}` : l.name.name)

function stepDoc(s: ast.Step): Doc {
  switch (s.kind) {
    case 'as':
      return [
        `${s.buffer.name} as `,
        partsDoc(s.parts),
        s.live ? ' live' : '',
        s.live?.inPlace ? ' in place' : '',
        s.live?.capacity ? [' capacity ', values(s.live.capacity.positions)] : '',
        s.live?.capacity?.inAll ? ' in all' : '',
        s.carried.length ? ` for ${s.carried.map((it) => it.name).join(', ')}` : '',
      ]
    case 'each':
      return [eachHead(s), ' {', s.steps.map((x, k) => [k === 0 ? ' ' : '; ', stepDoc(x)]), ' }']
    case 'merge_parts':
      return `merge parts of ${s.buffer.name}`
    case 'use':
      return ['use ', callDoc(s)]
    case 'step':
      return [s.word, s.args.map((a) => [' ', typeof a === 'string' ? a : valueDoc(a.value)])]
  }
}

function valueDoc(v: ast.StepValue): Doc {
  switch (v.kind) {
    case 'loop':
      return printLoop(v.loop)
    case 'name':
      return v.name.name
    case 'integer':
      return v.operand ? primaryDoc(v.value) : exprDoc(v.value)
    case 'word':
      return v.text
    case 'binding':
      return `${printLoop(v.loop)} to ${v.to}`
    case 'instance':
      return instanceDoc(v.use)
    case 'list': {
      const items = v.items.map(valueDoc)
      return v.parentheses ? tuple(items) : group(nest(commaSeparated(items)))
    }
    case 'group':
      return groupOfValues(v.items)
  }
}

/** A group of values: `(S, T)`, `(a.i, b.j)`, or with the common part once: `(a, b).i`, `(a, b).(i, j)`. */
function groupOfValues(items: readonly ast.StepValue[]): Doc {
  const [first] = items
  if (first?.kind === 'binding')
    return [groupOfLoops(items.map((v) => (v as typeof first).loop)), ` to ${first.to}`]
  if (first?.kind === 'loop') return groupOfLoops(items.map((v) => (v as typeof first).loop))
  if (first?.kind !== 'list') return tuple(items.map(valueDoc))
  const loopsOf = (v: ast.StepValue): readonly ast.LoopRef[] =>
    (v as typeof first).items.flatMap((x) => (x.kind === 'loop' ? [x.loop] : []))
  const nests = items.map((v) => loopsOf(v)[0]!.nest!.name)
  return [tuple(nests), '.', tuple(loopsOf(first).map((l) => l.name.name))]
}

function groupOfLoops(loops: readonly ast.LoopRef[]): Doc {
  const { name } = loops[0]!
  const inNests = loops.every((l) => l.nest && l.name.name === name.name)
  return inNests ? [tuple(loops.map((l) => l.nest!.name)), `.${name.name}`] : tuple(loops.map(printLoop))
}
