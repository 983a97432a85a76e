/**
 * Where something stands in a text. Texts are called by names, of which two may have the same: programs that are given as texts,
 * a file before and after it was changed. So a span that was read knows its text, which is no part of its data.
 */

/** A source text by name; what a renderer needs to draw frames. */
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

/** Copies by their properties are spans as well, and know the name alone. */
class Place implements Span {
  readonly source: string
  readonly start: number
  readonly end: number
  readonly #text: string | undefined

  constructor(source: string, start: number, end: number, text: string | undefined) {
    this.source = source
    this.start = start
    this.end = end
    this.#text = text
  }

  static textOf(span: Span): string | undefined {
    return #text in span ? span.#text : undefined
  }
}

/** A place in a source, if its text is known. */
export const spanIn = (
  { name, text }: Pick<Source, 'name'> & Partial<Source>,
  start: number,
  end: number,
): Span => new Place(name, start, end, text)

/** Another place in the text of a span. */
export const spanAt = (of: Span, start: number, end: number): Span =>
  new Place(of.source, start, end, Place.textOf(of))

/** The source that a span is of: by itself, else the one of these that is called so. */
export function sourceOf(span: Span, sources?: ReadonlyMap<string, Source>): Source | undefined {
  const text = Place.textOf(span)
  return text === undefined ? sources?.get(span.source) : { name: span.source, text }
}
