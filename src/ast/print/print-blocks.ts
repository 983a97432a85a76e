/** Lines, blocks and their comments, the building blocks of printed declarations. */
import type { Comment, If, Stmt, Trivia } from '../nodes/nodes.ts'
import { bracketList, type Doc, layout } from './layout-document.ts'
import { exprDoc } from './print-expr.ts'

/** Longest line in characters, if it can be broken. */
const WIDTH = 120

/** A block with the text before and after it on its lines. */
export interface PrintedGroup {
  readonly head: string
  readonly trivia: Trivia | undefined
  readonly tail: Doc
  readonly body: () => void
  /** The text of the body if it is a single line; `''` if it is empty. */
  readonly only: Doc | undefined
}

/** Text under construction: whole lines, indented. */
export class Printer {
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

  private printLeading(t: Trivia | undefined, first: boolean): void {
    this.comments(t?.before, first)
    if (t?.blank && !(first && !t.before?.length)) this.gap()
  }

  /** A line (or several, if it is too long) with its comments; `first`: of its block. */
  item(t: Trivia | undefined, first: boolean, doc: Doc): void {
    this.printLeading(t, first)
    this.line(layout(doc, this.indent, WIDTH) + trailingComments(t?.after))
  }

  /** `head { … } tail` with its comments; on one line if `only`, the text of its single line, fits. */
  block(t: Trivia | undefined, first: boolean, head: Doc, body: () => void, only?: Doc, tail = ''): void {
    this.printLeading(t, first)
    const short = this.oneLine(t, head, only)
    if (short === null) this.braces(layout(head, this.indent, WIDTH - 2), t?.open, t?.end, body)
    else this.text += short
    this.text += tail
    this.close(t?.after)
  }

  private oneLine(t: Trivia | undefined, head: Doc, only: Doc | undefined): string | null {
    if (only === undefined || t?.open || t?.end) return null
    return this.fitting([head, ' { ', only, ' }'])
  }

  /** `doc` on one line, or `null` if it is too long. */
  private fitting(doc: Doc): string | null {
    const text = layout(doc, 0, Number.POSITIVE_INFINITY)
    return this.indent + text.length <= WIDTH ? ' '.repeat(this.indent) + text : null
  }

  /** Several blocks in a row, each with its own comments: `either { … } or { … }`. */
  groups(t: Trivia | undefined, first: boolean, list: readonly PrintedGroup[]): void {
    this.printLeading(t, first)
    const short = list.every((g) => g.only !== undefined && !g.trivia?.open && !g.trivia?.end)
      ? this.fitting(list.map((g): Doc => [g.head, g.only ? [' { ', g.only, ' }'] : ' {}', g.tail]))
      : null
    if (short !== null) this.text += short
    else
      for (const { head, trivia, tail, body } of list) {
        this.braces(head, trivia?.open, trivia?.end, body)
        this.text += layout(tail, this.indent, Number.POSITIVE_INFINITY)
      }
    this.close(t?.after)
  }

  /** `head {`, the body, the comments at its end, and the indented closing brace without a line break. */
  braces(
    head: string,
    open: readonly Comment[] | undefined,
    end: readonly Comment[] | undefined,
    body: () => void,
  ): void {
    this.text += `${this.atLineStart ? ' '.repeat(this.indent) : ''}${head} {${trailingComments(open)}\n`
    const start = this.text.length
    this.indent += 2
    body()
    this.comments(end, this.text.length === start)
    this.indent -= 2
    if (this.text.length === start && !open?.length) this.text = `${this.text.trimEnd()}}`
    else this.text += `${' '.repeat(this.indent)}}`
  }

  close(after: readonly Comment[] | undefined): void {
    this.text += `${trailingComments(after)}\n`
  }

  private get atLineStart(): boolean {
    return this.text === '' || this.text.endsWith('\n')
  }

  /** Prints an `if` with all its branches; `stmts` prints their statements, and `only` is the text of a single one. */
  if(s: If, first: boolean, stmts: (list: readonly Stmt[]) => void, only: Doc | undefined): void {
    const head = ['if (', exprDoc(s.cond), ')']
    const short = this.oneLine(s.trivia, head, only)
    this.printLeading(s.trivia, first)
    if (short === null) this.ifTail(s, stmts)
    else this.text += short
    this.close(s.trivia?.after)
  }

  private ifTail(s: If, stmts: (list: readonly Stmt[]) => void): void {
    const head = layout(['if ', bracketList('(', [exprDoc(s.cond)], ')')], this.indent, WIDTH)
    const t = s.trivia
    this.braces(head, t?.open, t?.end, () => stmts(s.then))
    if (s.else.length === 0 && !t?.openElse && !t?.endElse) return
    this.text += ' else'
    const [only] = s.else
    if (s.else.length === 1 && only?.kind === 'if' && isElseIf(s, only)) {
      this.text += ' '
      this.ifTail(only, stmts)
    } else this.braces('', t?.openElse, t?.endElse, () => stmts(s.else))
  }
}

/** True if the only `if` in an `else` may be printed as `else if` without moving a comment. */
function isElseIf(outer: If, inner: If): boolean {
  const { openElse, endElse } = outer.trivia ?? {}
  const { before: start, after } = inner.trivia ?? {}
  return !openElse && !endElse && !start && !after
}

const trailingComments = (after: readonly Comment[] | undefined): string =>
  (after ?? []).map((c) => ` ${c.text}`).join('')
