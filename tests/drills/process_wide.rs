//! Nothing is wrong with the call, but with the process around it.

use crate::client::Ask;
use crate::responder::{events_end_with, explained, explains, run, unread};
use crate::world::Setup;

/// [EXP-4] [EVT-9] Drill 9: the wall clock jumps while a call runs.
#[tokio::test(flavor = "multi_thread")]
async fn a_clock_step() {
    let world = Setup::new().start().await;
    world.ask(&Ask::turn("hello").thread("user")).await.completed();
    // A second is between two looks; the first look is the one that the step is seen against.
    tokio::time::sleep(std::time::Duration::from_millis(1500)).await;
    world.app.step_clock(-3600);
    world.saw("clock_stepped", 1).await;
    let sentence = "nothing went wrong with the call itself: the call was served by openai/main over WebSocket in D, \
                    response.created after D, first output after D; the wall clock was set back by D at T, so times around \
                    it do not compare";
    let printed = explains(
        world.state.path(),
        "user",
        &sentence.replace("set back by D", "set back by 1 h"),
    )
    .await;
    assert!(printed.text.contains("clock"), "{}", printed.text);
    let story = explained(world.state.path(), "user");
    assert_eq!(
        (&story["cause"], &story["detail"]),
        (&"clock_stepped".into(), &"back".into())
    );
    let cause = ["! clock_stepped", "back by 1h"];
    events_end_with(world.state.path(), &["--kind", "clock*"], &cause).await;
}

/// [EXP-1] A healthy call is told to be one, with its durations; an id that is not there is told what may be the reason.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_wrong() {
    let world = Setup::new().start().await;
    let answer = world.ask(&Ask::turn("hello").thread("user")).await;
    let id = answer.id();
    let sentence = "nothing went wrong: the call was served by openai/main over WebSocket in D, response.created after D, \
                    first output after D";
    explains(world.state.path(), &id, sentence).await;
    world.ask(&Ask::turn("hello").thread("user")).await.completed();
    let sentence = "nothing went wrong: both calls were served; the last one was served by openai/main over WebSocket in D, \
                    response.created after D, first output after D";
    explains(world.state.path(), "user", sentence).await;
    let state = world.state.path().to_str().unwrap();
    let printed = run(&["explain", "resp_nobody", "--state", state]);
    assert_eq!(printed.code, 1, "{}", printed.text);
    assert!(
        printed
            .last_line()
            .starts_with("the journal has nothing of this id:"),
        "{}",
        printed.text
    );
    // A reader that leaves at once changes nothing of it.
    for (id, code) in [("user", 0), ("resp_nobody", 1)] {
        for json in [&[][..], &["--json"]] {
            let args = [&["explain", id, "--state", state], json].concat();
            assert_eq!(unread(&args), (code, String::new()), "{args:?}");
        }
    }
    let printed = run(&["explain", "x", "--state", "/nowhere/at/all"]);
    assert_eq!((printed.code, printed.text.as_str()), (2, ""));
    assert!(
        printed.errors.contains("there is no state in /nowhere/at/all"),
        "{}",
        printed.errors
    );
}
