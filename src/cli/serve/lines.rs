//! The way of event lines to stderr: many in one write, from a thread of their own. A wake-up and a write for each line would
//! cost a short turn more than all else that is told of it.

use std::io::Write;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use crate::telemetry::LOG_LOST;

/// Bytes that wait at most, while stderr takes none; beyond it lines are lost, never turns held.
const MOST: usize = 16 << 20;
/// How long a line waits for others to join it.
const LINGER: Duration = Duration::from_millis(5);
/// How long the end waits for what is left to be taken.
const LAST: Duration = Duration::from_secs(1);

#[derive(Default)]
struct State {
    waiting: Vec<u8>,
    /// Lines that there was no room for, after those that wait; it is said right after them.
    lost: u64,
    closed: bool,
    /// The thread is gone: nothing more will be written.
    ended: bool,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    rang: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes whole lines. Cloning shares it.
#[derive(Clone)]
pub struct Lines(Arc<Shared>);

/// Writes what is left when it is dropped.
pub struct Rest(Arc<Shared>);

/// The way in, and what sees to the end.
///
/// # Errors
/// No thread can be started.
pub fn to(out: impl Write + Send + 'static) -> std::io::Result<(Lines, Rest)> {
    let shared = Arc::<Shared>::default();
    let own = shared.clone();
    std::thread::Builder::new()
        .name("event-lines".to_owned())
        .spawn(move || write(&own, out))?;
    Ok((Lines(shared.clone()), Rest(shared)))
}

impl Lines {
    /// Never waits: a line for which there is no room is lost, and counted.
    pub fn put(&self, line: &[u8]) {
        let mut state = self.0.lock();
        let first = state.waiting.is_empty() && state.lost == 0;
        // Once some are lost, all are until that can be said in its place.
        if state.ended || state.lost > 0 || state.waiting.len() + line.len() > MOST {
            state.lost += 1;
            LOG_LOST.fetch_add(1, Ordering::Relaxed);
        } else {
            state.waiting.extend_from_slice(line);
        }
        drop(state);
        if first {
            self.0.rang.notify_all();
        }
    }
}

fn write(shared: &Shared, mut out: impl Write) {
    let mut lines = Vec::new();
    loop {
        let mut state = shared.lock();
        while state.waiting.is_empty() && state.lost == 0 && !state.closed {
            state = shared.rang.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if !state.closed {
            drop(state);
            std::thread::sleep(LINGER);
            state = shared.lock();
        }
        std::mem::swap(&mut lines, &mut state.waiting);
        if state.lost > 0 {
            lines.extend_from_slice(missing(std::mem::take(&mut state.lost)).as_bytes());
        }
        let over = state.closed && lines.is_empty();
        drop(state);
        // Nobody reads any more: no reason not to serve.
        let gone = out.write_all(&lines).and_then(|()| out.flush()).is_err();
        lines.clear();
        // The room of a burst is not kept for ever.
        lines.shrink_to(1 << 16);
        if over || gone {
            let mut state = shared.lock();
            state.ended = true;
            // What came while the last of it was written is taken by nobody, and need not be held.
            let left = std::mem::take(&mut state.waiting);
            let left = left.iter().filter(|byte| **byte == b'\n').count();
            LOG_LOST.fetch_add(left as u64, Ordering::Relaxed);
            shared.rang.notify_all();
            return;
        }
    }
}

/// What stands in the place of lines that are not there. None of the bridge's events: it happened to the log alone.
fn missing(lost: u64) -> String {
    let ts = humantime::format_rfc3339_millis(SystemTime::now());
    format!("{{\"ts\":\"{ts}\",\"level\":\"warn\",\"event\":\"log_lost\",\"lost\":{lost}}}\n")
}

impl Drop for Rest {
    fn drop(&mut self) {
        let until = Instant::now() + LAST;
        let mut state = self.0.lock();
        state.closed = true;
        self.0.rang.notify_all();
        while !state.ended && Instant::now() < until {
            let woken = self.0.rang.wait_timeout(state, LAST / 10);
            (state, _) = woken.unwrap_or_else(PoisonError::into_inner);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Default)]
    struct Paper(Arc<Mutex<(Vec<u8>, usize)>>);

    impl Write for Paper {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            let mut paper = self.0.lock().unwrap();
            paper.0.extend_from_slice(bytes);
            paper.1 += 1;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    /// [EVT-2] [JRN-14] Every line is written, whole and in order, the last ones at the end, and many of them at once.
    #[test]
    fn lines_are_written_together() {
        let paper = Paper::default();
        let (lines, rest) = to(paper.clone()).unwrap();
        let expected: String = (0..10_000).map(|n| format!("{{\"n\":{n}}}\n")).collect();
        expected
            .split_inclusive('\n')
            .for_each(|line| lines.put(line.as_bytes()));
        drop(rest);
        let (written, writes) = paper.0.lock().unwrap().clone();
        assert_eq!(String::from_utf8(written).unwrap(), expected);
        assert!(writes < 1000, "{writes}");
    }

    /// Takes nothing until it may.
    struct Gate(Paper, std::sync::mpsc::Receiver<()>);

    impl Write for Gate {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            // Once opened it stays open: the sender is gone.
            let _ = self.1.recv();
            self.0.write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    /// [EVT-11] Lines that there was no room for are counted, and a line in their place says how many, once; then it goes on.
    #[test]
    fn what_is_lost_is_said() {
        let paper = Paper::default();
        let (open, gate) = std::sync::mpsc::sync_channel(0);
        let (lines, rest) = to(Gate(paper.clone(), gate)).unwrap();
        let before = LOG_LOST.load(Ordering::Relaxed);
        let long = format!("{}\n", "x".repeat((1 << 20) - 1));
        for _ in 0..40 {
            lines.put(long.as_bytes());
        }
        let counted = lines.0.lock().lost;
        assert!((7..=24).contains(&counted), "{counted}");
        // Another test of this process may lose some, too.
        assert!(LOG_LOST.load(Ordering::Relaxed) - before >= counted);
        drop(open);
        let taken = || {
            let state = lines.0.lock();
            state.waiting.is_empty() && state.lost == 0
        };
        while !taken() {
            std::thread::sleep(Duration::from_millis(5));
        }
        lines.put(b"after\n");
        drop(rest);
        let text = String::from_utf8(paper.0.lock().unwrap().0.clone()).unwrap();
        let short: Vec<&str> = text.lines().filter(|line| line.len() < 1000).collect();
        assert_eq!(text.lines().count() - 2, 40 - usize::try_from(counted).unwrap());
        let said: serde_json::Value = serde_json::from_str(short[0]).unwrap();
        assert_eq!(
            (&said["event"], &said["lost"]),
            (&"log_lost".into(), &counted.into())
        );
        assert_eq!((short.len(), short[1]), (2, "after"));
        assert!(
            text.ends_with("\nafter\n"),
            "it is said where they would have been"
        );
    }

    struct Stuck;

    impl Write for Stuck {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            loop {
                std::thread::park();
            }
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    /// [EVT-2] Where nobody takes lines they are lost, in bounded room, and neither a turn nor the end waits for long.
    #[test]
    fn a_stuck_reader_holds_nothing_up() {
        let (lines, rest) = to(Stuck).unwrap();
        let begin = Instant::now();
        let line = [b'x'; 1 << 20];
        (0..100).for_each(|_| lines.put(&line));
        assert!(lines.0.lock().waiting.len() <= MOST);
        drop(rest);
        assert!(begin.elapsed() < Duration::from_secs(15));
    }
}
