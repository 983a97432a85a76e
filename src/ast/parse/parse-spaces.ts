/** Choices among schedules, and spaces of schedules: parse actions for the grammar. */
import { failAt, type Span } from '../diagnostics/diagnostic.ts'
import type * as ast from '../nodes/nodes.ts'
import { Writable } from './comments.ts'
import {
  type Actions,
  type Braces,
  blockItem,
  checked,
  get,
  item,
  line,
  part,
  register,
  slotsOf,
  spanOf,
} from './parse-context.ts'

type Range = Extract<ast.NumberList, { kind: 'range' }>

export const spaces: Actions = {
  Choice_searched: line<ast.Space>(
    { kind: 'choice', by: 'search' },
    ...(['', '...', '', 'name', 'params*', '', '', '', '{items}'] as const),
  ),
  FormatDecision: line<ast.FormatDecision>('formats', '', 'name', '', 'options'),
  FormatOption_parts: part<ast.FormatOption>(null, '', 'parts', '', 'where'),
  FormatOption_use(use, where): ast.FormatOption {
    const only = { ...get<ast.FormatUse>(use), where: null }
    return { parts: [only], where: get(where), span: spanOf(this) }
  },
  NumberDecision: line<ast.NumberDecision>('numbers', 'name', 'values', 'where'),
  NumberList_list: (_, widths): ast.NumberList => ({ kind: 'list', widths: get(widths) }),
  NumberList_range: part<Range>('range', '', 'from', '', 'to', '', 'by'),
  Only: line<ast.Only>('only', '', 'cond'),
  SpaceStep(node, _) {
    const step = get<ast.SpaceStep>(node)
    return step.kind === 'each' || step.kind === 'either' ? step : item({ ...step, span: spanOf(node) })
  },
  UseAlternatives: part<ast.UseAlternatives>('uses', '', 'options'),
  UseOption: part<ast.UseOption>(null, 'schedule', 'args*', 'results*', 'where'),
  Either(_, options) {
    const groups = get<ast.StepGroup[]>(options)
    const node: ast.Either = { kind: 'either', groups, span: spanOf(this) }
    const blocks = slotsOf(groups).flatMap((s) => s.blocks)
    register(node, { span: node.span, blocks, trivia: new Writable() })
    return node
  },
  StepGroup: line<ast.StepGroup>(null, '{steps}', 'where'),
}

// Choices among schedules: parse actions for the grammar.

const DISPATCH = { kind: 'choice', by: 'rules', isExtension: false, table: null }

function checkOtherwise({ branches }: ast.Dispatch): void {
  const otherwise = branches.findIndex((b) => b.cond === null)
  const misplaced = otherwise < 0 ? undefined : branches[otherwise + 1]
  if (misplaced)
    failAt('parse/after-otherwise', misplaced.span, {
      message: 'nothing is left to choose after `otherwise`',
      labels: [{ span: branches[otherwise]!.span, text: 'this is for all others' }],
      hint: 'move `otherwise` to the end',
    })
}

/** A branch with a schedule call, or with several in braces (`fastest`). */
function branch(cond: ast.Expr | null, called: ast.ScheduleCall | Braces<ast.ScheduleCall>, span: Span) {
  if (!('items' in called)) return item<ast.Branch>({ cond, isFastest: false, calls: [called], span })
  return blockItem<ast.Branch>({ cond, isFastest: true, calls: called.items, span }, called)
}

export const choices: Actions = {
  Choice_chosen: checked(
    line<ast.Dispatch>(DISPATCH, '', '...', '', 'name', 'params*', '', '{branches}'),
    checkOtherwise,
  ),
  Choice_stored: line<ast.Dispatch>(
    () => ({ ...DISPATCH, branches: [] }),
    ...(['', '...', '', 'name', 'params*', '', '', 'table'] as const),
  ),
  Choice_extended: checked(
    line<ast.Dispatch>(
      () => ({ ...DISPATCH, params: [], isExtension: true }),
      ...(['', '...', '', 'name', '', '{branches}'] as const),
    ),
    checkOtherwise,
  ),
  When(_, _open, cond, _close, called) {
    return branch(get(cond), get(called), spanOf(this))
  },
  Otherwise(_, called) {
    return branch(null, get(called), spanOf(this))
  },
  ScheduleCall: line<ast.ScheduleCall>(null, 'schedule', 'args*'),
  NamedArgs(_, args, _close) {
    const namedArgs = get<ast.NamedArg[]>(args)
    const firstNamed = namedArgs.findIndex((a) => a.name !== null)
    const misplaced = firstNamed < 0 ? undefined : namedArgs.find((a, k) => k > firstNamed && a.name === null)
    if (misplaced)
      failAt('parse/argument-order', misplaced.span, {
        message: 'an argument without a name follows one with a name',
        labels: [{ span: namedArgs[firstNamed]!.span, text: 'named here' }],
        hint: 'move the argument to the front, or name the argument',
      })
    return namedArgs
  },
  NamedArg_named: part<ast.NamedArg>(null, 'name', '', 'value'),
  NamedArg_place: part<ast.NamedArg>({ name: null }, 'value'),
}
