/** Spaces of schedules, and choices among schedules, as text. */
import { quotedPath } from '../imports/resolve-path.ts'
import type * as ast from '../nodes/nodes.ts'
import { commaSeparated, type Doc, group, line, nest } from './layout-document.ts'
import type { PrintedGroup, Printer } from './print-blocks.ts'
import { widthsDoc } from './print-declarations.ts'
import {
  callDoc,
  exprDoc,
  kernelText,
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
  readonly printItem: (p: Printer, s: ast.Step, first: boolean) => void
}

export function printSpace(p: Printer, s: ast.Space, steps: StepPrinter): void {
  p.block(s.trivia, true, [scheduleHead(s), ' choose by search'], () => {
    s.items.forEach((x, k) => {
      printItem(p, x, k === 0, steps)
    })
  })
}

function printItem(p: Printer, x: ast.SpaceItem, first: boolean, steps: StepPrinter): void {
  if (x.kind === 'either') p.groups(x.trivia, first, groupsOf(x, p, steps))
  else if (isOneLine(x)) p.item(x.trivia, first, itemDoc(x))
  else steps.printItem(p, x, first)
}

type OneLineItem = Exclude<ast.SpaceItem, ast.Step | ast.Either>
const isOneLine = (x: ast.SpaceItem): x is OneLineItem =>
  x.kind === 'formats' || x.kind === 'numbers' || x.kind === 'only' || x.kind === 'uses'

function itemDoc(x: OneLineItem): Doc {
  switch (x.kind) {
    case 'formats':
      return group(`format ${x.name.name} in `, nest(separatedBy(x.options.map(formatOption), ',')))
    case 'numbers':
      return group(nest(x.name.name, ' ', numbersDoc(x.values), whereDoc(x.where)))
    case 'only':
      return ['only', whereDoc(x.cond)]
    case 'uses':
      return group('use ', nest(separatedBy(x.options.map(useOption), ' or')))
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
      g.steps.forEach((s, n) => {
        printItem(p, s, n === 0, steps)
      })
    },
  }))

/** `a, b`, one per line if they do not fit on one. */
const separatedBy = (docs: readonly Doc[], separator: string): Doc =>
  docs.flatMap((d, k) => (k === 0 ? [d] : [separator, line, d]))

const formatOption = ({ parts, where }: ast.FormatOption): Doc => {
  const [firstPart, secondPart] = parts
  const isBareUse = firstPart && !secondPart && !firstPart.where
  return [isBareUse ? partsDoc(parts) : ['(', partsDoc(parts), ')'], whereDoc(where)]
}

const useOption = (o: ast.UseOption): Doc => [callDoc(o), whereDoc(o.where)]

function numbersDoc(values: ast.NumberList): Doc {
  if (values.kind === 'list') return ['in ', widthsDoc(values.widths)]
  const { from, to, by: separator } = values
  return ['from ', exprDoc(from), ' to ', exprDoc(to), separator ? [' by ', exprDoc(separator)] : '']
}

/** A step or an alternative of steps, on one line. */
function spaceStepDoc(s: ast.SpaceStep | ast.UseStep, doc: StepPrinter['doc']): Doc {
  if (s.kind === 'uses') return ['use ', s.options.map((o, k) => [k === 0 ? '' : ' or ', useOption(o)])]
  if (s.kind === 'either') return eitherDoc(s, doc)
  return doc(s)
}

const eitherDoc = ({ groups }: ast.Either, doc: StepPrinter['doc']): Doc => [
  'either ',
  groups.map((g, k) => [k === 0 ? '' : ' or ', groupDoc(g, doc), whereDoc(g.where)]),
]

/** `{ unroll j by 4; unroll fv }` */
export const groupDoc = ({ steps }: Pick<ast.StepGroup, 'steps'>, doc: StepPrinter['doc']): Doc => [
  '{',
  steps.map((s, k) => [k === 0 ? ' ' : '; ', spaceStepDoc(s, doc)]),
  ' }',
]

// Choices among schedules as text.

export function printChoice(p: Printer, c: ast.Dispatch): void {
  if (c.table) {
    p.item(c.trivia, true, [scheduleHead(c), ' choose from ', quotedPath(c.table.value)])
    return
  }
  p.block(c.trivia, true, [scheduleHead(c), c.isExtension ? ' extends' : ' choose'], () => {
    c.branches.forEach((b, k) => {
      printBranch(p, b, k === 0)
    })
  })
}

function printBranch(p: Printer, b: ast.Branch, first: boolean): void {
  const head: Doc = b.cond ? ['when (', exprDoc(b.cond), ') '] : 'otherwise '
  const from = b.origin ? ` from ${quotedPath(b.origin.value)}` : ''
  if (b.isFastest) p.block(b.trivia, first, [head, 'fastest'], () => printCalls(p, b), undefined, from)
  else p.item(b.trivia, first, [head, namedCallDoc(b.calls[0]!), from])
}

export function printTable(p: Printer, { trivia, kernel, types, hash, items }: ast.DispatchTable): void {
  const head = `dispatch ${kernelText(kernel, types)}${hash ? ` hash ${quotedPath(hash.value)}` : ''}`
  p.block(trivia, true, head, () =>
    items.forEach((x, k) => {
      if ('cond' in x) printBranch(p, x, k === 0)
      else printOrigin(p, x, k === 0)
    }),
  )
}

function printOrigin(p: Printer, { trivia, name, status, fields }: ast.Origin, first: boolean): void {
  p.block(trivia, first, `origin ${quotedPath(name.value)} ${status.name}`, () =>
    fields.forEach((f, k) => {
      const values = f.values.map((x) => ('kind' in x ? exprDoc(x) : quotedPath(x.value)))
      p.item(f.trivia, k === 0, [f.name.name, ' ', group(nest(commaSeparated(values)))])
    }),
  )
}

function printCalls(p: Printer, { calls }: ast.Branch): void {
  calls.forEach((c, k) => {
    p.item(c.trivia, k === 0, namedCallDoc(c))
  })
}

function namedCallDoc({ schedule, args }: ast.ScheduleCall): Doc {
  const list = args.map((a): Doc => [a.name ? `${a.name.name} = ` : '', exprDoc(a.value)])
  return [schedule.name, optional(list)]
}
