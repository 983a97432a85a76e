/**
 * Source locations. Two texts may have the same name, for example a file before and after an edit. Parsed spans
 * therefore refer to their text in a private field, which is not part of their data.
 */

/** A named source text, from which a renderer draws frames. */
export interface Source {
  readonly name: string
  readonly text: string
}

/** A half-open range of characters `[start, end)` in the source called `source`. */
export interface Span {
  readonly source: string
  readonly start: number
  readonly end: number
}

/** A span with a reference to its text. Copies made by spreading are spans too, but lose the reference. */
class SpanInText implements Span {
  readonly source: string
  readonly start: number
  readonly end: number
  readonly #text: string | undefined
  readonly #call: Span | undefined

  constructor(source: string, start: number, end: number, text: string | undefined, call?: Span) {
    this.source = source
    this.start = start
    this.end = end
    this.#text = text
    this.#call = call
  }

  static textOf(span: Span): string | undefined {
    return #text in span ? span.#text : undefined
  }

  static callOf(span: Span): Span | undefined {
    return #call in span ? span.#call : undefined
  }
}

/** A span in a source, with a reference to its text if it is available. */
export const spanIn = (
  { name, text }: Pick<Source, 'name'> & Partial<Source>,
  start: number,
  end: number,
): Span => new SpanInText(name, start, end, text)

/** Another span in the text of a span. */
export const spanAt = (reference: Span, start: number, end: number): Span =>
  new SpanInText(reference.source, start, end, SpanInText.textOf(reference))

/** A span in a callee that replaces a call, which is in a callee itself if `span` is in an inner one. */
export function spanInCall(span: Span, call: Span): Span {
  const inner = SpanInText.callOf(span)
  return new SpanInText(
    span.source,
    span.start,
    span.end,
    SpanInText.textOf(span),
    inner ? spanInCall(inner, call) : call,
  )
}

/** The calls through which a span is a part of a kernel, the innermost one first. */
export function callsOf(span: Span | undefined): readonly Span[] {
  const call = span && SpanInText.callOf(span)
  return call ? [call, ...callsOf(call)] : []
}

/** The source of a span: its own, otherwise the one of the same name in `sources`. */
export function sourceOf(span: Span, sources?: ReadonlyMap<string, Source>): Source | undefined {
  const text = SpanInText.textOf(span)
  return text === undefined ? sources?.get(span.source) : { name: span.source, text }
}
