/**
 * sparsetile in notebooks: formats, stages, tables, charts and results of searches as values that Deno's Jupyter kernel
 * shows. Figures are stored as PNG where `@resvg/resvg-wasm` and `dejavu-fonts-ttf` are installed: viewers empty SVG that
 * they do not trust. Outside of notebooks, what is given has `bundle()`, `toString()`, and figures `svg` and `png()`.
 */

export type { FrameOptions } from './notebook/chart/frame.ts'
export {
  type BarsOptions,
  bars,
  type ChartOptions,
  type HeatmapOptions,
  heatmap,
  type IntervalsOptions,
  intervals,
  lines,
  type ScatterOptions,
  scatter,
} from './notebook/chart/index.ts'
export type { AxesOptions } from './notebook/chart/layers.ts'
export { CellOutput, display, type MimeBundle } from './notebook/display.ts'
export { Figure, picture } from './notebook/figure.ts'
export { comparison, parts, storage } from './notebook/formats.ts'
export { type TuneReportOptions, tuneReport } from './notebook/report/index.ts'
export type { Studies, StudyTrial } from './notebook/studies.ts'
export { best, type ConvergenceOptions, convergence, outcomes, predictions } from './notebook/studies.ts'
export { type Row, type TableOptions, table } from './notebook/table.ts'
export type { Language } from './notebook/texts.ts'
export { code, generatedCode, stage, steps, type TextOptions } from './notebook/texts.ts'
export type { MeasurePair, WeighedTrial } from './notebook/tradeoffs.ts'
export {
  importance,
  type ParetoMeasure,
  type ParetoOptions,
  pareto,
  paretoFront,
} from './notebook/tradeoffs.ts'
