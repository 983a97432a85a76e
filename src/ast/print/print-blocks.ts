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
  /** Position of the current block in the text. */
  private start = 0

  private line(text: string): void {
    this.text += `${' '.repeat(this.indent)}${text}\n`
  }

  /** A blank line, unless at the beginning of the file or of a block. */
  private gap(): void {
    if (this.text.length > this.start) this.text += '\n'
  }

  /** Begins a declaration, after a blank line. */
  section(): void {
    this.gap()
    this.start = this.text.length
  }

  comments(list: readonly Comment[] | undefined): void {
    for (const c of list ?? []) {
      if (c.blank) this.gap()
      this.line(c.text)
    }
  }

  private printLeading(t: Trivia | undefined): void {
    this.comments(t?.before)
    if (t?.blank) this.gap()
  }

  /** A line (or several, if it is too long) with its comments. */
  item(t: Trivia | undefined, doc: Doc): void {
    this.printLeading(t)
    this.line(layout(doc, this.indent, WIDTH) + trailingComments(t?.after))
  }

  /** An item for each node. */
  items<T extends { readonly trivia?: Trivia | undefined }>(
    nodes: readonly T[],
    doc: (node: T) => Doc,
  ): void {
    for (const node of nodes) this.item(node.trivia, doc(node))
  }

  /** `head { … } tail` with its comments; on one line if `only`, the text of its single line, fits. */
  block(t: Trivia | undefined, head: Doc, body: () => void, only?: Doc, tail = ''): void {
    this.printLeading(t)
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
  groups(t: Trivia | undefined, list: readonly PrintedGroup[]): void {
    this.printLeading(t)
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
    const { start } = this
    this.start = this.text.length
    this.indent += 2
    body()
    this.comments(end)
    this.indent -= 2
    if (this.text.length === this.start && !open?.length) this.text = `${this.text.trimEnd()}}`
    else this.text += `${' '.repeat(this.indent)}}`
    this.start = start
  }

  close(after: readonly Comment[] | undefined): void {
    this.text += `${trailingComments(after)}\n`
  }

  private get atLineStart(): boolean {
    return this.text === '' || this.text.endsWith('\n')
  }

  /** Prints an `if` with all its branches; `stmts` prints their statements, and `only` is the text of a single one. */
  if(s: If, stmts: (list: readonly Stmt[]) => void, only: Doc | undefined): void {
    const head = ['if (', exprDoc(s.cond), ')']
    const short = this.oneLine(s.trivia, head, only)
    this.printLeading(s.trivia)
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
