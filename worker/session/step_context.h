// Step context: the time of one call into a worker's session, the actions that the call returns,
// and the table of open requests. It is passed down the call, so that no part keeps a time or a
// list of actions between calls.
//
// Owned by the call; one thread.
#pragma once

#include <utility>

#include "common/base/clock.h"
#include "common/transport/message.h"
#include "worker/session/actions.h"
#include "worker/session/open_requests.h"

namespace kumo {

struct WorkerStepContext {
  TimeUs now = 0;
  OpenRequests* requests = nullptr;  // the session's
  WorkerActions actions;             // in the order of execution

  void Do(WorkerAction action) { actions.push_back(std::move(action)); }
  // Sends a message once, without retries.
  void Send(int server, Message message) { Do(SendToServerAction{server, std::move(message)}); }
  // Opens a request: it is sent when the server's window allows, and repeated until answered.
  void Ask(int server, wire::Header header, Payload payload = {}) {
    requests->Add(server, {std::move(header), std::move(payload)});
  }
  // Sends the requests that the windows allow; called at the end of a step.
  void SendRequests() {
    for (const OpenRequest* request : requests->Send(now)) {
      Send(request->server, request->message);
    }
  }
};

}  // namespace kumo
