/**
 * Milliseconds after which a test counts as hanging, on the busiest machine. No test has a limit of its own (except for
 * searches of given length), and waits within a test are shorter, so that they report what they waited for.
 */
export const TIME_LIMIT = 900_000
