/** Spaces of schedules, and choices among schedules, as text. */
import { quotedPath } from '../imports/resolve-path.ts'
import type * as ast from '../nodes/nodes.ts'
import { commaSeparated, type Doc, group, line, nest, separated } from './layout-document.ts'
import type { PrintedGroup, Printer } from './print-blocks.ts'
import { widthsDoc } from './print-declarations.ts'
import {
  after,
  callDoc,
  exprDoc,
  kernelText,
  namedArgDoc,
  optional,
  partsDoc,
  scheduleHead,
  single,
  whereDoc,
} from './print-expr.ts'

/** Printers of the steps that are not specific to spaces. */
interface StepPrinter {
  readonly doc: (s: ast.Step) => Doc
  /** As `doc`, for the only step of a body; undefined if the step does not fit there. */
  readonly onLine: (s: ast.Step) => Doc | undefined
  readonly printItem: (p: Printer, s: ast.Step) => void
}

export function printSpace(p: Printer, s: ast.Space, steps: StepPrinter): void {
  p.block(s.trivia, [scheduleHead(s), ' choose by search'], () => {
    for (const x of s.items) printItem(p, x, steps)
  })
}

function printItem(p: Printer, x: ast.SpaceItem, steps: StepPrinter): void {
  if (x.kind === 'either') p.groups(x.trivia, groupsOf(x, p, steps))
  else if (isOneLine(x)) p.item(x.trivia, itemDoc(x))
  else steps.printItem(p, x)
}

type OneLineItem = Exclude<ast.SpaceItem, ast.Step | ast.Either>
const isOneLine = (x: ast.SpaceItem): x is OneLineItem =>
  x.kind === 'formats' || x.kind === 'numbers' || x.kind === 'only' || x.kind === 'uses'

function itemDoc(x: OneLineItem): Doc {
  switch (x.kind) {
    case 'formats':
      return group(`format ${x.name.name} in `, nest(commaSeparated(x.options.map(formatOption))))
    case 'numbers':
      return group(nest(x.name.name, ' ', numbersDoc(x.values), whereDoc(x.where)))
    case 'only':
      return ['only', whereDoc(x.cond)]
    case 'uses':
      return group('use ', nest(separated(x.options, [' or', line], useOption)))
  }
}

const groupsOf = ({ groups }: ast.Either, p: Printer, steps: StepPrinter): readonly PrintedGroup[] =>
  groups.map((g, k) => ({
    head: k === 0 ? 'either' : ' or',
    trivia: g.trivia,
    tail: whereDoc(g.where),
    only:
      g.steps.length === 0
        ? ''
        : single(g.steps, (x) => (x.kind === 'either' || x.kind === 'uses' ? undefined : steps.onLine(x))),
    body: () => {
      for (const s of g.steps) printItem(p, s, steps)
    },
  }))

const formatOption = ({ parts, where }: ast.FormatOption): Doc => {
  const [firstPart, secondPart] = parts
  const isBareUse = firstPart && !secondPart && !firstPart.where
  return [isBareUse ? partsDoc(parts) : ['(', partsDoc(parts), ')'], whereDoc(where)]
}

const useOption = (o: ast.UseOption): Doc => [callDoc(o), whereDoc(o.where)]

function numbersDoc(values: ast.NumberList): Doc {
  if (values.kind === 'list') return ['in ', widthsDoc(values.widths)]
  return ['from ', exprDoc(values.from), ' to ', exprDoc(values.to), after(' by ', values.by)]
}

/** A step or an alternative of steps, on one line. */
function spaceStepDoc(s: ast.SpaceStep | ast.UseStep, doc: StepPrinter['doc']): Doc {
  if (s.kind === 'uses') return ['use ', separated(s.options, ' or ', useOption)]
  if (s.kind !== 'either') return doc(s)
  return ['either ', separated(s.groups, ' or ', (g) => [groupDoc(g, doc), whereDoc(g.where)])]
}

/** `{ unroll j by 4; unroll fv }` */
export const groupDoc = ({ steps }: Pick<ast.StepGroup, 'steps'>, doc: StepPrinter['doc']): Doc => [
  '{',
  steps.map((s, k) => [k === 0 ? ' ' : '; ', spaceStepDoc(s, doc)]),
  ' }',
]

// Choices among schedules as text.

export function printChoice(p: Printer, c: ast.Dispatch): void {
  if (c.table) {
    p.item(c.trivia, [scheduleHead(c), ' choose from ', quotedPath(c.table.value)])
    return
  }
  p.block(c.trivia, [scheduleHead(c), c.isExtension ? ' extends' : ' choose'], () => {
    for (const b of c.branches) printBranch(p, b)
  })
}

function printBranch(p: Printer, b: ast.Branch): void {
  const head: Doc = b.cond ? ['when (', exprDoc(b.cond), ') '] : 'otherwise '
  const from = b.origin ? ` from ${quotedPath(b.origin.value)}` : ''
  const calls = () => p.items(b.calls, namedCallDoc)
  if (b.isFastest) p.block(b.trivia, [head, 'fastest'], calls, undefined, from)
  else p.item(b.trivia, [head, namedCallDoc(b.calls[0]!), from])
}

export function printTable(p: Printer, { trivia, kernel, types, hash, items }: ast.DispatchTable): void {
  const head = `dispatch ${kernelText(kernel, types)}${hash ? ` hash ${quotedPath(hash.value)}` : ''}`
  p.block(trivia, head, () => {
    for (const x of items)
      if ('cond' in x) printBranch(p, x)
      else printOrigin(p, x)
  })
}

function printOrigin(p: Printer, { trivia, name, status, fields }: ast.Origin): void {
  p.block(trivia, `origin ${quotedPath(name.value)} ${status.name}`, () =>
    p.items(fields, (f) => {
      const values = f.values.map((x) => ('kind' in x ? exprDoc(x) : quotedPath(x.value)))
      return [f.name.name, ' ', group(nest(commaSeparated(values)))]
    }),
  )
}

function namedCallDoc({ schedule, args }: ast.ScheduleCall): Doc {
  return [schedule.name, optional(args.map(namedArgDoc))]
}
