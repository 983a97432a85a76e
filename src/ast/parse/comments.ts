/** Attaches the comments and blank lines of a source to AST nodes, so that the printer keeps them. */
import type { Span } from '../diagnostics/diagnostic.ts'
import type { Comment, Trivia } from '../nodes/nodes.ts'

/** A node that occupies lines of its own; `trivia` receives its comments. */
export interface Slot {
  readonly span: Span
  readonly blocks: readonly BlockSlot[]
  readonly trivia: Writable
}

/** A brace-enclosed list of slots; `owner` receives the comments that belong to no slot. */
export interface BlockSlot {
  /** From the opening brace to the end of the closing one. */
  readonly span: Span
  readonly slots: readonly Slot[]
  readonly owner: Writable
  readonly which: 'then' | 'else'
}

type ListKey = 'before' | 'after' | 'open' | 'end' | 'openElse' | 'endElse'

export class Writable {
  readonly lists: Partial<Record<ListKey, Comment[]>> = {}
  blank = false

  add(key: ListKey, comment: Comment): void {
    const list = (this.lists[key] ??= [])
    list.push(comment)
  }

  get value(): Trivia | undefined {
    if (!this.blank && Object.keys(this.lists).length === 0) return undefined
    return { ...(this.blank && { blank: true }), ...this.lists }
  }
}

/** Walks the tree of slots and the comments together; both are in source order. */
export class Attacher {
  private next = 0

  constructor(
    private readonly text: string,
    private readonly comments: readonly Comment[],
  ) {}

  /**
   * Attaches the comments of a whole file. Blank lines before declarations are not recorded, because the printer always
   * inserts them.
   */
  file(slots: readonly Slot[], owner: Writable): void {
    this.list(slots, { start: 0, end: this.text.length, owner, which: 'then', top: true })
  }

  private list(
    slots: readonly Slot[],
    block: { start: number; end: number; owner: Writable; which: 'then' | 'else'; top: boolean },
  ): void {
    let from = block.start
    let first = true
    if (!block.top) {
      const limit = slots[0]?.span.start ?? block.end
      const key = block.which === 'then' ? 'open' : 'openElse'
      from = this.sameLine(block.start, limit, (c) => block.owner.add(key, c))
    }
    for (const slot of slots) {
      for (let c = this.peek(slot.span.start); c; c = this.peek(slot.span.start)) {
        slot.trivia.add('before', this.spaced(c, from, first))
        from = c.span.end
        first = false
        this.next++
      }
      if (!first && this.hasBlank(from, slot.span.start)) slot.trivia.blank = true
      this.inside(slot)
      from = this.sameLine(slot.span.end, block.end, (c) => slot.trivia.add('after', c))
      first = block.top
    }
    for (let c = this.peek(block.end); c; c = this.peek(block.end)) {
      block.owner.add(block.which === 'then' ? 'end' : 'endElse', this.spaced(c, from, first))
      from = c.span.end
      first = false
      this.next++
    }
  }

  /** Attaches comments inside a slot to its blocks or, if they are in the middle of an expression, before the slot. */
  private inside(slot: Slot): void {
    for (const block of slot.blocks) {
      for (let c = this.peek(block.span.start); c; c = this.peek(block.span.start)) {
        slot.trivia.add('before', c)
        this.next++
      }
      const { start, end } = block.span
      this.list(block.slots, {
        start: start + 1,
        end: end - 1,
        owner: block.owner,
        which: block.which,
        top: false,
      })
    }
    for (let c = this.peek(slot.span.end); c; c = this.peek(slot.span.end)) {
      slot.trivia.add('before', c)
      this.next++
    }
  }

  /**
   * Takes the comments that begin on the line of `from` and end before `limit`, if only a line break follows them;
   * returns the end of the last one.
   */
  private sameLine(from: number, limit: number, take: (c: Comment) => void): number {
    let offset = from
    let n = this.next
    for (let c = this.comments[n]; c && c.span.end <= limit; c = this.comments[++n]) {
      if (/[^ \t\r;]/.test(this.text.slice(offset, c.span.start))) break
      offset = c.span.end
    }
    if (n === this.next || !/^[ \t\r;]*(\n|$)/.test(this.text.slice(offset))) return from
    while (this.next < n) take(this.comments[this.next++]!)
    return offset
  }

  private peek(before: number): Comment | undefined {
    const c = this.comments[this.next]
    return c && c.span.start < before ? c : undefined
  }

  private spaced(c: Comment, from: number, first: boolean): Comment {
    return !first && this.hasBlank(from, c.span.start) ? { ...c, blank: true } : c
  }

  private hasBlank(start: number, end: number): boolean {
    return /\n[ \t\r;]*\n/.test(this.text.slice(start, end))
  }
}
